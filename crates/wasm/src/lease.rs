//! The algebra on a lease that the host keeps: the state that the store held, and the leased tokens.

use crate::engine::with;
use tidegate_core::{Lease, Spending, State, check_count, check_now};
use tidegate_table::wire::{UNDECIDED, policy, refuse, write_decision};
use wasm_bindgen::prelude::wasm_bindgen;

/// Takes `count` of the leased tokens (`leased`), or denies, under this policy, given as for
/// [`evaluate`](crate::evaluate). With [`UNDECIDED`] in the status word only the store can decide. The sixth number is
/// the leased tokens that are left.
#[wasm_bindgen]
#[must_use]
#[expect(clippy::too_many_arguments, reason = "numbers cross the boundary without glue, an object would not")]
pub fn lease_spend(
    kind: u32,
    rate: f64,
    period: f64,
    capacity: f64,
    max_reserved: f64,
    start: f64,
    shards: f64,
    kept: f64,
    kept_ts: f64,
    leased: f64,
    now: f64,
    count: f64,
) -> u32 {
    let read = || {
        let policy = policy(kind, [rate, period, capacity, max_reserved, start, shards])?;
        Ok((policy, check_now(now)?, check_count(count)?, State::new(kept, kept_ts)?))
    };
    let (policy, now, count, kept) = match read() {
        Ok(read) => read,
        Err(error) => return refuse(error),
    };
    with(|engine| {
        engine.numbers[5] = leased;
        match (Lease { kept, leased }).spend(&policy.bucket(0.0), now, count) {
            Spending::Undecided(decision) => write_decision(&decision, &mut engine.numbers) | UNDECIDED,
            Spending::Denied(decision) => write_decision(&decision, &mut engine.numbers),
            Spending::Granted(decision, left) => {
                engine.numbers[5] = left;
                write_decision(&decision, &mut engine.numbers)
            }
        }
    })
}
