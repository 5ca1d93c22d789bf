//! Search for the exact integer near an estimate.

use crate::number::{ceil, floor, max, min};

/// The least integer in `(no, last]` for which `yes` holds, or `None` if it does not hold at `last`.
///
/// `yes` must be monotone, and must not hold at `no`. The search starts at `estimate`, which comes from a closed form
/// and is off by a step or two of rounding, so nearly every call takes two evaluations. It gallops from there and then
/// bisects: at most about 110 evaluations.
#[cfg_attr(not(feature = "small"), inline(always))]
pub(crate) fn least(no: f64, last: f64, estimate: f64, yes: impl Fn(f64) -> bool) -> Option<f64> {
    // One copy of the search for all predicates.
    #[cfg(feature = "small")]
    let yes: &dyn Fn(f64) -> bool = &yes;
    search(no, last, estimate, yes)
}

#[cfg_attr(not(feature = "small"), inline(always))]
fn search(no: f64, last: f64, estimate: f64, yes: impl Fn(f64) -> bool) -> Option<f64> {
    let mut no = no;
    // Not `no >= last`, here and below: NaN, which an infinite clock or grid leads to, must end the search.
    let is_ahead = no < last;
    if !is_ahead {
        return None;
    }
    let mut at = min(max(ceil(estimate), no + 1.0), last);
    let mut step = 1.0;
    // Widens in steps that double, until `no` and `at` have the edge between them: downwards, or upwards.
    if yes(at) {
        loop {
            let before = at - step;
            let is_between = no < before;
            if !is_between {
                break;
            }
            if !yes(before) {
                no = before;
                break;
            }
            at = before;
            step *= 2.0;
        }
    } else {
        loop {
            if at >= last {
                return None;
            }
            no = at;
            at = min(at + step, last);
            step *= 2.0;
            if yes(at) {
                break;
            }
        }
    }
    // Bisects.
    loop {
        // Exact: both are integers, at most 2^53 apart.
        let middle = no + floor((at - no) / 2.0);
        // Otherwise adjacent; or beyond 2^53, where doubles skip integers.
        let is_between = no < middle && middle < at;
        if !is_between {
            return Some(at);
        }
        if yes(middle) {
            at = middle;
        } else {
            no = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::cell::Cell;

    #[test]
    fn the_search_finds_the_least_from_any_estimate_in_bounded_steps() {
        const LAST: f64 = 4_503_599_627_370_496.0;
        for edge in [1.0, 2.0, 3.0, 1000.0, 123_456_789.0, LAST - 1.0, LAST] {
            for estimate in [f64::NEG_INFINITY, -5.0, 0.5, 1.0, 999.0, 1e9, LAST, 1e300, f64::INFINITY, f64::NAN] {
                let evaluations = Cell::new(0);
                let found = least(0.0, LAST, estimate, |t| {
                    evaluations.set(evaluations.get() + 1);
                    t >= edge
                });
                assert_eq!(found, Some(edge), "from {estimate}");
                assert!(evaluations.get() <= 110, "{} evaluations", evaluations.get());
            }
        }
        // Windows counted from a `ts` that is not a legal instant: inexact, but the search ends.
        for (no, last) in [(0.0, 1e300), (-1e300, 1e300), (1e300, 1.5e300), (1e15, f64::MAX), (f64::MIN, f64::MAX)] {
            for edge in [no, no / 3.0 + last / 3.0, last, f64::INFINITY] {
                for estimate in [f64::NEG_INFINITY, 0.0, 1e17, 1e299, f64::NAN] {
                    let evaluations = Cell::new(0);
                    let found = least(no, last, estimate, |t| {
                        evaluations.set(evaluations.get() + 1);
                        t >= edge
                    });
                    assert!(
                        found.is_none_or(|t| t.is_finite()) && evaluations.get() < 2300,
                        "{} evaluations",
                        evaluations.get()
                    );
                }
            }
        }
        assert_eq!(least(0.0, 10.0, 3.0, |_| false), None);
        assert_eq!(least(10.0, 10.0, 3.0, |_| true), None);
        assert_eq!(least(7.0, 10.0, 0.0, |_| true), Some(8.0));
        for (no, last) in [(f64::NEG_INFINITY, 1e15), (0.0, f64::INFINITY), (f64::NEG_INFINITY, f64::INFINITY)] {
            for estimate in [f64::NEG_INFINITY, 0.0, f64::INFINITY, f64::NAN] {
                for (edge, of_nan) in [(f64::NEG_INFINITY, true), (0.0, true), (1e15, false), (f64::INFINITY, false)] {
                    let evaluations = Cell::new(0);
                    let _ = least(no, last, estimate, |t| {
                        evaluations.set(evaluations.get() + 1);
                        assert!(evaluations.get() < 2300, "{no} {last} {estimate} {edge}");
                        t >= edge || (t.is_nan() && of_nan)
                    });
                }
            }
        }
        for (no, last) in [(f64::NAN, 10.0), (0.0, f64::NAN), (f64::INFINITY, f64::INFINITY)] {
            assert_eq!(least(no, last, 3.0, |_| false), None);
        }
    }
}
