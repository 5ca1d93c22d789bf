//! The algebra on a lease that the host keeps: the state that the store held, and the leased tokens.

use crate::engine::status;
use tidegate_core::{Lease, Spending, State, check_count, check_now};
use tidegate_wire::{UNDECIDED, policy, refuse, write_decision};
use wasm_bindgen::prelude::wasm_bindgen;

/// Takes `count` of the leased tokens (`leased`), or denies, under the policy at [`numbers_at`](crate::numbers_at). With
/// [`UNDECIDED`] in the status word only the store can decide. The sixth number is the leased tokens that are left.
#[wasm_bindgen]
#[must_use]
pub fn lease_spend(kind: u32, kept: f64, kept_ts: f64, leased: f64, now: f64, count: f64) -> u32 {
    let read = || Ok((check_now(now)?, check_count(count)?, State::new(kept, kept_ts)?));
    status(|engine| {
        let policy = policy(kind, &engine.numbers)?;
        let (now, count, kept) = read().map_err(refuse)?;
        let (decision, left, bit) = match (Lease { kept, leased }).spend(&policy.bucket(0.0), now, count) {
            Spending::Undecided(decision) => (decision, leased, UNDECIDED),
            Spending::Denied(decision) => (decision, leased, 0),
            Spending::Granted(decision, left) => (decision, left, 0),
        };
        engine.numbers[5] = left;
        Ok(write_decision(&decision, &mut engine.numbers) | bit)
    })
}
