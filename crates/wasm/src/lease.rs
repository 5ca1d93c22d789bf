//! The algebra on a lease that the host keeps itself: what the store held, and what is in hand.

use crate::engine::{get, with};
use tidegate_core::{Lease, Spending, State, check_count, check_now};
use tidegate_table::wire::{ASK, BROKEN, WRITES, refuse, tell};

/// Takes `count` tokens out of the `hand`, or says when they can be taken; `ASK`: only the store can tell. The sixth
/// number is what is in hand afterwards.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn lease_spend(limit: u32, start: f64, kept: f64, kept_ts: f64, hand: f64, now: f64, count: f64) -> u32 {
    with(|engine| {
        let read = || Ok((check_now(now)?, check_count(count)?, State::new(kept, kept_ts)?));
        let (now, count, kept) = match read() {
            Ok(read) => read,
            Err(error) => return refuse(error),
        };
        let Some(limit) = get(&engine.limits, limit) else { return BROKEN };
        engine.numbers[5] = hand;
        match (Lease { kept, hand }).spend(&limit.policy().rule(start), now, count) {
            Spending::Ask(decision) => tell(&decision, &mut engine.numbers) | ASK,
            Spending::Denied(decision) => tell(&decision, &mut engine.numbers),
            Spending::Granted(decision, left) => {
                engine.numbers[5] = left;
                tell(&decision, &mut engine.numbers) | WRITES
            }
        }
    })
}
