//! Those who wait until the store has told, in their order: the rule of `npm/tidegate/src/lease/waiting.ts`.

use std::collections::VecDeque;

use crate::demand::Call;

/// Calls, those who came first in front.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    all: VecDeque<Call>,
    /// How many tokens all of them ask for.
    pub(super) tokens: f64,
    /// The most that one of them asks for, or asked for since nobody waited.
    pub(super) most: f64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn first(&self) -> Option<Call> {
        self.all.front().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.all.iter()
    }

    pub(super) fn push(&mut self, call: Call) {
        self.all.push_back(call);
        self.tokens += call.count;
        self.most = self.most.max(call.count);
    }

    /// The first, who waits no longer.
    pub(super) fn shift(&mut self) -> Option<Call> {
        let first = self.all.pop_front()?;
        self.tokens -= first.count;
        if self.all.is_empty() {
            *self = Waiting::default();
        }
        Some(first)
    }
}
