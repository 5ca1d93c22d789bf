//! A segment compared with a map, and its invariants.

use super::Segment;
use crate::call::Change;
use crate::limit::Digest;
use crate::packed::Entry;
use proptest::prelude::*;
use std::collections::HashMap;
use std::format;
use std::vec::Vec;
use tidegate_core::{MAX_SKEW_MS, State};

impl Segment {
    /// The invariant that the search relies on: ascending hashes, each at its home or after it with no gap between.
    pub(crate) fn check(&self) {
        let mut last = 0;
        let mut used = 0;
        for (place, entry) in self.places.iter().enumerate().filter(|(_, entry)| !entry.is_vacant()) {
            assert!(entry.high() >= last, "hashes descend at {place}");
            last = entry.high();
            used += 1;
            let home = self.home(entry.high());
            assert!(home <= place, "an entry is at {place}, before its home {home}");
            assert!(self.places[home..place].iter().all(|e| !e.is_vacant()), "a gap before {place}, after home {home}");
        }
        assert_eq!(used, self.used, "entries in use");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(Digest, f64, u32),
    Remove(Digest),
    Wait(u32),
}

/// Few and extreme hashes, equal upper halves, and lower halves that differ in one bit: hashes that are likely to
/// collide.
fn digest() -> impl Strategy<Value = Digest> {
    let high = prop_oneof![
        Just(0),
        Just(u64::MAX),
        (0u64..8).prop_map(|i| i << 61),
        (0u64..4).prop_map(|i| u64::MAX - i),
        0u64..4,
        any::<u64>()
    ];
    let low = prop_oneof![0u64..3, Just(1 << 11), Just(u64::MAX), Just(u64::MAX - 1)];
    (high, low).prop_map(|(high, low)| Digest { low, high })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (digest(), -1e9..1e9f64, 0u32..5000).prop_map(|(d, value, full)| Step::Write(d, value, full)),
        2 => digest().prop_map(Step::Remove),
        1 => (0u32..3000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_segment_behaves_as_a_map_that_drops_full_states(steps in prop::collection::vec(step(), 1..300)) {
        let mut segment = Segment::default();
        let mut model: HashMap<(u64, u64), Entry> = HashMap::new();
        let mut now = 1000.0;
        for step in steps {
            match step {
                Step::Wait(ms) => now += f64::from(ms),
                Step::Write(digest, value, full) => {
                    let state = State::new(value, now).unwrap();
                    let full_at = now + f64::from(full);
                    let entry = Entry::new(digest, state, full_at);
                    if let Some(entry) = segment.write(&Change { digest, state, full_at }) {
                        let used = segment.used();
                        prop_assert!(segment.insert(entry, now));
                        let dropped = used + 1 - segment.used();
                        if dropped > 0 {
                            let before = model.len();
                            model.retain(|_, entry| entry.full_at() > now);
                            prop_assert_eq!((before - model.len()) as u32, dropped);
                        }
                    }
                    model.insert((digest.low, digest.high), entry);
                }
                Step::Remove(digest) => {
                    prop_assert_eq!(segment.reset(digest), model.remove(&(digest.low, digest.high)).is_some());
                }
            }
            segment.check();
            prop_assert_eq!(segment.entries().count(), model.len());
            for ((low, high), expected) in &model {
                let Ok(place) = segment.find(Digest { low: *low, high: *high }) else {
                    return Err(TestCaseError::fail(format!("{low:x} {high:x} is lost")));
                };
                prop_assert_eq!(segment.get(place).unwrap().to_words(), expected.to_words());
            }
            prop_assert!(segment.places() <= 4 * model.len() + 40, "{} places for {}", segment.places(), model.len());
        }
    }
}

#[test]
fn the_fullest_is_that_of_the_sample_however_many_states_there_are() {
    let mut segment = Segment::default();
    let state = State::new(0.0, 0.0).expect("a state");
    for i in 0..1000_u64 {
        let digest = Digest { low: i, high: i << 54 };
        // The fullest of all is beyond the first sample.
        let full_at = [(100, 2e6), (500, 1e6)].into_iter().find(|(at, _)| *at == i).map_or(3e6, |(_, full_at)| full_at);
        let entry = Entry::new(digest, state, full_at);
        segment.insert(entry, 0.0);
    }
    assert_eq!(segment.drop_fullest(0.0), Some(false));
    let gone: Vec<u64> = (0..1000).filter(|&i| segment.find(Digest { low: i, high: i << 54 }).is_err()).collect();
    assert_eq!(gone, [100]);
}

#[test]
fn homes_spread_over_the_span_in_the_order_of_the_hashes() {
    let segment = Segment { span: 100, ..Segment::default() };
    let places = [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX].map(|high| segment.home(high));
    assert_eq!(places, [0, 25, 50, 75, 99]);
}

#[test]
fn an_instant_of_a_broken_clock_is_not_recorded_and_a_recorded_one_is_replaced() {
    const NOW: f64 = 1.8e12;
    let mut segment = Segment::default();
    let mut after = |at| {
        segment.dropped(at, NOW);
        segment.fresh_from
    };
    assert_eq!(after(NOW - 10.0), NOW - 10.0);
    assert_eq!(after(NOW - 20.0), NOW - 10.0);
    assert_eq!(after(NOW + MAX_SKEW_MS + 1.0), NOW - 10.0);
    assert_eq!(after(NOW + MAX_SKEW_MS), NOW + MAX_SKEW_MS);
    segment.fresh_from = NOW + MAX_SKEW_MS + 1.0;
    segment.dropped(NOW - 5.0, NOW);
    assert_eq!(segment.fresh_from, NOW - 5.0);
}

#[test]
fn an_array_is_filled_to_seven_eighths_and_grows_by_a_quarter() {
    let mut segment = Segment::default();
    let mut sizes = Vec::new();
    for i in 0u64..10_000 {
        let digest = Digest { high: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), low: i };
        assert!(segment.insert(Entry::new(digest, State::new(0.0, 5.0).unwrap(), 1e6), 5.0));
        if sizes.last() != Some(&segment.places()) {
            sizes.push(segment.places());
        }
        assert!(segment.used * 8 <= segment.span * 7, "{} of {}", segment.used, segment.span);
    }
    segment.check();
    // 1.25^33 is 1,580: some thirty rebuilds from six places to ten thousand.
    assert!((20..=40).contains(&sizes.len()), "{sizes:?}");
}
