//! The keys that went deepest into debt: the only ones that a capacity near the deepest debt can deny anything.

use std::collections::HashMap;

/// Keys that are held; where more of them owe much, all count as heavy.
const ROOM: usize = 4096;
/// A debt below which telling keys apart gains nothing, and above which half of it is far more than rounding.
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

    /// Whether a capacity of no less than `deepest - 1` can deny this key anything.
    #[inline]
    pub(crate) fn has(&self, key: Option<&[u8]>) -> bool {
        self.all || self.deepest < 2.0 * LEAST || self.keys.contains_key(key.unwrap_or_default())
    }
}
