//! The keys with the deepest debts: a capacity near the deepest debt can deny only their requests.

use std::collections::HashMap;

/// Most keys held; with more, every key counts as heavy.
const ROOM: usize = 4096;
/// Least debt, in tokens, at which keys are distinguished: half of it is far above any rounding error.
const LEAST: f64 = 16.0;

/// Keys that owed more than half of the deepest debt.
#[derive(Default)]
pub(crate) struct Heavy {
    pub(crate) deepest: f64,
    keys: HashMap<Vec<u8>, f64>,
    all: bool,
}

impl Heavy {
    #[inline]
    pub(crate) fn add(&mut self, key: Option<&[u8]>, debt: f64) {
        self.deepest = self.deepest.max(debt);
        if debt > self.deepest / 2.0 && debt >= LEAST && !self.all {
            self.keep(key.unwrap_or_default(), debt);
        }
    }

    fn keep(&mut self, key: &[u8], debt: f64) {
        if let Some(kept) = self.keys.get_mut(key) {
            *kept = kept.max(debt);
            return;
        }
        self.keys.insert(key.to_vec(), debt);
        if self.keys.len() > ROOM {
            let half = self.deepest / 2.0;
            self.keys.retain(|_, debt| *debt > half);
            self.all = self.keys.len() > ROOM / 2;
        }
    }

    /// Whether a capacity of at least `deepest - 1` can deny a request of this key.
    #[inline]
    pub(crate) fn has(&self, key: Option<&[u8]>) -> bool {
        self.all || self.deepest < 2.0 * LEAST || self.keys.contains_key(key.unwrap_or_default())
    }
}
