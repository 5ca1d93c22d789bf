//! Law 5: the value differs from exact arithmetic by rounding alone, and the error stays far below one token.

use crate::law::{bucket, calls, cases, instants, limits};
use proptest::prelude::*;
use tidegate_core::State;
use tidegate_oracle::Limit;
use tidegate_oracle::exact::{self, Exact, rational};
use tidegate_oracle::tolerance::{Tolerance, ulp};

proptest! {
    #![proptest_config(cases(4000))]

    /// Each step errs by less than 3 ulp of its largest number: the refill is rounded as a product and as a quotient,
    /// the sum and the difference once each. A full state is exact again.
    #[test]
    fn a_history_stays_within_rounding_of_exact_arithmetic(limit in limits(), from in instants(), calls in calls(1..60), far: bool) {
        let (bucket, exact, full) = (bucket(&limit), Exact::new(&limit), rational(limit.most()));
        let (mut now, mut state, mut twin): (f64, Option<State>, Option<exact::State>) = (from, None, None);
        let mut tolerance = Tolerance::default();
        for call in &calls {
            now = call.now(&limit, now, far);
            let (count, ms) = (call.count(&limit), now as i128);
            let (got, exactly) = (bucket.refill(state, now), exact.refill(twin.as_ref(), ms));
            let before = tolerance;
            if got.value() == limit.most() && exactly.value == full {
                tolerance = Tolerance::default();
            }
            tolerance.step(1.0, limit.most().max(count).max(got.value().abs()));
            prop_assert!(tolerance.same(got.value(), &exactly.value), "{} {}", got.value(), exactly.value);
            if limit.opens() && (got.value() == limit.most()) != (exactly.value == full) {
                break; // rounding alone decides whether the window is full, and so when it begins
            }
            prop_assert_eq!(got.ts(), exactly.ts as f64);
            let outcome = match call.op {
                0..=5 => bucket.take(state, now, count, false),
                6..=8 => bucket.take(state, now, count, true),
                9 => bucket.give(state, now, count),
                _ => bucket.charge(state, now, count),
            };
            if let Some(write) = outcome.write {
                // The exact model follows the decision of the doubles.
                let tokens = rational(count);
                let answer = if call.op == 9 { exact.give(twin.as_ref(), ms, &tokens) } else { exact.charge(twin.as_ref(), ms, &tokens) };
                tolerance.step(1.0, write.value());
                state = Some(write);
                twin = answer.write;
            } else {
                tolerance = before; // nothing was stored, and a broken clock may be correct again
            }
        }
    }
}

/// 10^7 grants on a bucket of capacity 10^6 that is never full. The exact value is an integer number of (1024 *
/// period)ths.
fn long_run(limit: Limit, seed: u64) -> f64 {
    const GRANTS: u32 = 10_000_000;
    let bucket = bucket(&limit);
    let mut random = tidegate_oracle::random::Random(seed);
    let (period, rate, capacity) = (limit.period as i128, limit.rate as i128, limit.most() as i128);
    let unit = 1024 * period;
    let mut now = 1_763_640_000_000i128;
    let mut state = bucket.charge(None, now as f64, 200_000.0).write;
    let (mut exact, mut then) = ((capacity - 200_000) * unit, now);
    let (mut granted, mut worst) = (0, 0f64);
    while granted < GRANTS {
        now += i128::from(random.below(8));
        // Kept in the upper part, where an ulp is largest, and never full.
        let demand = if exact > capacity * unit * 9 / 10 { 5600 } else { 1400 };
        let count = 1 + random.below(2 * 1024 * demand) as i128;
        let outcome = bucket.take(state, now as f64, count as f64 / 1024.0, false);
        let Some(write) = outcome.write else { continue };
        let earned = (now - then) * rate * 1024;
        assert!(exact + earned < capacity * unit, "full");
        exact = exact + earned - count * period;
        then = now;
        state = Some(write);
        granted += 1;
        let whole = exact.div_euclid(unit);
        let rest = exact.rem_euclid(unit) as f64 / unit as f64;
        worst = worst.max(((write.value() - whole as f64) - rest).abs());
    }
    worst
}

#[test]
fn ten_million_grants_drift_by_less_than_a_thousandth_of_a_token() {
    let limit = Limit::bucket(999_983_000.0, 999_979.0).capacity(1e6);
    let worst = long_run(limit, 5);
    println!("off by at most {worst} tokens");
    assert!(worst < 1e-3, "{worst}");
    assert!(worst < 1e7 * ulp(1e6), "{worst}");
    assert!(worst > 0.0, "nothing was rounded: the run proves nothing");
}
