//! The most frequent keys, in bounded memory.
//!
//! Misra and Gries' summary, pruned by halves: when there are more keys than there is room for, all counts are reduced
//! by the median, and keys at 0 are removed. So a count is at most the total reduction below the true one, and never
//! above it. Without a reduction, every count is exact.

use crate::report::WorstKey;
use std::collections::HashMap;

/// Counts by key.
pub(crate) struct Top {
    room: usize,
    counts: HashMap<Vec<u8>, Seen>,
    lowered: u64,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    count: u64,
    /// The longest wait since the key is counted, ms.
    longest: f64,
}

impl Top {
    pub(crate) fn new(room: usize) -> Top {
        Top { room, counts: HashMap::new(), lowered: 0 }
    }

    pub(crate) fn add(&mut self, key: &[u8], time: f64) {
        if let Some(seen) = self.counts.get_mut(key) {
            seen.count += 1;
            seen.longest = seen.longest.max(time);
            return;
        }
        self.counts.insert(key.to_vec(), Seen { count: 1, longest: time });
        if self.counts.len() > self.room {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().map(|seen| seen.count).collect();
        let half = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(half);
        let median = *median;
        self.lowered += median;
        self.counts.retain(|_, seen| {
            seen.count = seen.count.saturating_sub(median);
            seen.count > 0
        });
    }

    /// Number of different keys; `None` if some were removed.
    pub(crate) fn keys(&self) -> Option<u64> {
        (self.lowered == 0).then_some(self.counts.len() as u64)
    }

    /// The first `n`, the most frequent first.
    pub(crate) fn leaders(&self, n: usize) -> Vec<WorstKey> {
        let mut all: Vec<(&Vec<u8>, &Seen)> = self.counts.iter().collect();
        all.sort_unstable_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
        all.truncate(n);
        let leader = |(key, seen): (&Vec<u8>, &Seen)| WorstKey {
            key: String::from_utf8_lossy(key).into_owned(),
            denied: seen.count,
            at_most: seen.count + self.lowered,
            longest_wait: seen.longest,
        };
        all.into_iter().map(leader).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn true_counts_are_within_the_bounds_and_memory_is_bounded(keys in prop::collection::vec(0u8..40, 0..400), room in 1usize..30) {
            let mut top = Top::new(room);
            let mut truth = [0u64; 40];
            for key in &keys {
                top.add(&[*key], 0.0);
                truth[usize::from(*key)] += 1;
                prop_assert!(top.counts.len() <= room);
            }
            for leader in top.leaders(40) {
                let count = truth[usize::from(leader.key.as_bytes()[0])];
                prop_assert!(leader.denied <= count && count <= leader.at_most);
            }
            if let Some(distinct) = top.keys() {
                prop_assert_eq!(distinct as usize, truth.iter().filter(|count| **count > 0).count());
            }
            // A removed key occurred at most as often as the counts were reduced.
            let listed: Vec<u8> = top.leaders(40).iter().map(|leader| leader.key.as_bytes()[0]).collect();
            for (key, count) in truth.iter().enumerate().filter(|(key, _)| !listed.contains(&(*key as u8))) {
                prop_assert!(*count <= top.lowered, "{key}");
            }
        }
    }

    #[test]
    fn counts_are_exact_while_there_is_room_and_then_lowered_by_their_median() {
        let mut top = Top::new(4);
        for (key, count) in [(b"a", 1), (b"b", 2), (b"c", 3), (b"d", 4)] {
            (0..count).for_each(|_| top.add(key, 0.0));
        }
        assert_eq!(top.keys(), Some(4));
        top.add(b"e", 0.0);
        let left: Vec<_> = top.leaders(4).into_iter().map(|leader| (leader.key, leader.denied)).collect();
        assert_eq!((left, top.lowered), (vec![("d".to_owned(), 2), ("c".to_owned(), 1)], 2));
    }

    #[test]
    fn keys_with_equal_counts_are_sorted_by_key_and_keep_their_longest_wait() {
        let mut top = Top::new(8);
        for wait in [5.0, 3.0] {
            (0..8).rev().for_each(|key| top.add(&[key], wait));
        }
        let leaders: Vec<_> = top.leaders(8).into_iter().map(|leader| (leader.key, leader.longest_wait)).collect();
        assert_eq!(leaders, (0..8u8).map(|key| (char::from(key).to_string(), 5.0)).collect::<Vec<_>>());
    }
}
