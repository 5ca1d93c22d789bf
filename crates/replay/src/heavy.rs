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

#[cfg(test)]
mod tests {
    use super::*;

    fn heavy(debts: impl IntoIterator<Item = (u16, f64)>) -> Heavy {
        let mut heavy = Heavy::default();
        for (key, debt) in debts {
            heavy.add(Some(&key.to_le_bytes()), debt);
        }
        heavy
    }

    fn has(heavy: &Heavy, key: u16) -> bool {
        heavy.has(Some(&key.to_le_bytes()))
    }

    #[test]
    fn keys_that_owed_more_than_half_of_the_deepest_debt_are_heavy() {
        let of = heavy([(1, 40.0), (2, 20.0), (3, 20.5), (3, 1.0), (4, 19.0)]);
        assert_eq!(of.deepest, 40.0);
        assert_eq!([1, 2, 3, 4, 5].map(|key| has(&of, key)), [true, false, true, false, false]);
    }

    #[test]
    fn every_key_is_heavy_while_the_deepest_debt_is_small() {
        assert_eq!([1, 2].map(|key| has(&heavy([(1, 31.0)]), key)), [true, true]);
        // Kept from 16 tokens on.
        let of = heavy([(1, 15.0), (2, 16.0), (3, 32.0)]);
        assert_eq!([1, 2, 3, 4].map(|key| has(&of, key)), [false, true, true, false]);
    }

    #[test]
    fn light_keys_are_dropped_for_room_and_if_too_many_heavy_ones_are_left_every_key_counts_as_heavy() {
        let (room, last) = (ROOM as u16, u16::MAX);
        let same = |keys: u16| heavy((0..keys).map(|key| (key, 100.0)));
        assert!(!has(&same(room), last));
        assert!(has(&same(room + 1), last));
        // Light ones, heavy ones, and one without room.
        let of = |left: u16| {
            let light = (0..=room - left).map(|key| (key, 20.0));
            // The last debt is the deepest, of which the light ones are half.
            heavy(light.chain((0..left - 1).map(|key| (10_000 + key, 39.0))).chain([(20_000, 40.0)]))
        };
        let some = of(room / 2);
        assert_eq!([0, 10_000, 20_000, last].map(|key| has(&some, key)), [false, true, true, false]);
        assert!(has(&of(room / 2 + 1), last));
    }
}
