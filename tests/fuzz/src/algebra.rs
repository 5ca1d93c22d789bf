use crate::draw::{Draw, policy};
use tidegate_core::{Bucket, Outcome, State};
use tidegate_oracle::exact::{self, Exact, rational};
use tidegate_oracle::tolerance::Tolerance;
use tidegate_oracle::{Limit, naive};

/// Any history on any limit: the core equals the plain doubles to the bit, is within the rounding of each step of the
/// exact rationals, and `retry_at` is the first ms at which the same request is granted.
pub fn algebra(data: &[u8]) {
    let mut draw = Draw::new(data);
    let limit = draw.limit();
    let (bucket, exact, full) = (policy(&limit).bucket(0.0), Exact::new(&limit), rational(limit.most()));
    let mut now = (1e12 + f64::from(draw.below(u16::MAX)) * 7919.0).floor();
    let (mut state, mut twin): (Option<State>, Option<exact::State>) = (None, None);
    let mut tolerance = Tolerance::default();
    for _ in 0..24 {
        if draw.is_empty() {
            break;
        }
        now = (now + draw.step(&limit).floor()).clamp(0.0, 1e15);
        let (op, ms) = (draw.byte() % 12, now as i128);
        let scale = if limit.most() > 0.0 { limit.most() } else { limit.rate };
        let count = (draw.share() * scale).min(1_099_511_627_776.0);
        let (refilled, exactly) = (bucket.refill(state, now), exact.refill(twin.as_ref(), ms));
        let before = tolerance;
        if refilled.value() == limit.most() && exactly.value == full {
            tolerance = Tolerance::default();
        }
        tolerance.step(1.0, limit.most().max(count).max(refilled.value().abs()));
        assert!(tolerance.same(refilled.value(), &exactly.value), "{} is not {}", refilled.value(), exactly.value);
        if limit.opens() && (refilled.value() == limit.most()) != (exactly.value == full) {
            break; // rounding alone decides whether the window is full, and so when it begins
        }
        assert_eq!(refilled.ts(), exactly.ts as f64);
        let outcome = call(&bucket, &limit, op, state, now, count);
        let Some(write) = outcome.write else {
            tolerance = before; // nothing was stored, and a broken clock may be correct again
            continue;
        };
        // The exact model follows the decision of the doubles.
        let tokens = rational(count);
        let answer =
            if op == 9 { exact.give(twin.as_ref(), ms, &tokens) } else { exact.charge(twin.as_ref(), ms, &tokens) };
        tolerance.step(1.0, write.value());
        (state, twin) = (Some(write), answer.write);
    }
}

fn call(bucket: &Bucket, limit: &Limit, op: u8, state: Option<State>, now: f64, count: f64) -> Outcome {
    let known = state.map(|s| naive::State { value: s.value(), ts: s.ts() });
    let reserve = (6..=8).contains(&op);
    let (outcome, plain) = match op {
        0..=8 => (bucket.take(state, now, count, reserve), naive::take(limit, known, now, count, reserve)),
        9 => (bucket.give(state, now, count), naive::give(limit, known, now, count)),
        _ => (bucket.charge(state, now, count), naive::charge(limit, known, now, count)),
    };
    assert_eq!(core_bits(&outcome), naive_bits(&plain), "{limit:?} {state:?} {now} {count} {op}");
    if let (0..=8, false, Some(at)) = (op, outcome.decision.ok, outcome.decision.retry_at) {
        let again = |at: f64| bucket.take(state, at, count, reserve).decision.ok;
        assert!(outcome.write.is_none() && at > now && again(at) && !again(at - 1.0), "retry at {at}");
    }
    outcome
}

type Bits = (bool, bool, [u64; 3], Option<u64>, Option<&'static str>, Option<[u64; 2]>);

fn core_bits(Outcome { decision: d, write }: &Outcome) -> Bits {
    let numbers = [d.value, d.ts, d.reset_at].map(f64::to_bits);
    let write = write.map(|s| [s.value(), s.ts()].map(f64::to_bits));
    (d.ok, d.reserved, numbers, d.retry_at.map(f64::to_bits), d.reason.map(|r| r.as_str()), write)
}

fn naive_bits((d, write): &(naive::Decision, Option<naive::State>)) -> Bits {
    let numbers = [d.value, d.ts, d.reset_at].map(f64::to_bits);
    let write = write.map(|s| [s.value, s.ts].map(f64::to_bits));
    (d.ok, d.reserved, numbers, d.retry_at.map(f64::to_bits), d.reason, write)
}
