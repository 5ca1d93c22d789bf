//! The algebra on a lease that the host keeps: the state that the store held, and the leased tokens.

use crate::engine::{get, with};
use tidegate_core::{Lease, Spending, State, check_count, check_now};
use tidegate_table::wire::{BROKEN, UNDECIDED, WRITES, refuse, write_decision};
use wasm_bindgen::prelude::wasm_bindgen;

/// Takes `count` of the leased tokens (`leased`), or denies. With [`UNDECIDED`] in the status word only the store can decide.
/// The sixth number is the leased tokens that are left.
#[wasm_bindgen]
#[must_use]
pub fn lease_spend(limit: u32, start: f64, kept: f64, kept_ts: f64, leased: f64, now: f64, count: f64) -> u32 {
    with(|engine| {
        let read = || Ok((check_now(now)?, check_count(count)?, State::new(kept, kept_ts)?));
        let (now, count, kept) = match read() {
            Ok(read) => read,
            Err(error) => return refuse(error),
        };
        let Some(limit) = get(&engine.limits, limit) else { return BROKEN };
        engine.numbers[5] = leased;
        match (Lease { kept, leased }).spend(&limit.policy().bucket(start), now, count) {
            Spending::Undecided(decision) => write_decision(&decision, &mut engine.numbers) | UNDECIDED,
            Spending::Denied(decision) => write_decision(&decision, &mut engine.numbers),
            Spending::Granted(decision, left) => {
                engine.numbers[5] = left;
                write_decision(&decision, &mut engine.numbers) | WRITES
            }
        }
    })
}
