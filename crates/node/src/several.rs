//! Calls on several keys: all or nothing, and batches of independent ones.

use crate::key::KeyBytes;
use crate::shared::table;
use crate::thread::{with_limit, with_limits};
use napi::bindgen_prelude::{Float64Array, Uint16Array, Uint32Array};
use napi::{Error, Result};
use napi_derive::napi;
use tidegate_core::{Decision, check_now};
use tidegate_table::Member;
use tidegate_table::wire::{BROKEN, NUMBERS, OK, call, refuse, tell};

/// The end that stands for: no key.
const NO_KEY: u32 = u32::MAX;

/// The keys that stand one after another in `units`, by where each ends.
pub(crate) fn keys(units: &[u16], ends: &[u32]) -> Result<Vec<Option<KeyBytes>>> {
    let mut from = 0;
    let key = |end: &u32| {
        if *end == NO_KEY {
            return Ok(None);
        }
        let part = units.get(from..*end as usize).and_then(KeyBytes::of);
        from = *end as usize;
        part.map(Some).ok_or_else(|| Error::from_reason("a key is too long"))
    };
    ends.iter().map(key).collect()
}

pub(crate) fn tell_all(decisions: &[Decision], answers: &mut [f64]) {
    for (decision, place) in decisions.iter().zip(answers.as_chunks_mut::<NUMBERS>().0) {
        place[NUMBERS - 1] = f64::from(tell(decision, place));
    }
}

/// What a call on several limits answers: see [`tidegate_table::Table::take_all`].
pub(crate) type Settled = (bool, Option<f64>, Vec<Decision>);

/// [`all`], on a table kept anywhere: `take` carries the members out.
pub(crate) fn settle(
    limits: &[u32],
    keys: &[Option<KeyBytes>],
    answers: &mut [f64],
    now: f64,
    take: impl FnOnce(&[Member<'_>], f64) -> std::result::Result<Settled, u32>,
) -> Vec<f64> {
    let failed = |status: u32| vec![f64::from(status), f64::NAN];
    let now = match check_now(now) {
        Ok(now) => now,
        Err(error) => return failed(refuse(error)),
    };
    let asked: Vec<[f64; NUMBERS]> = answers.as_chunks::<NUMBERS>().0.to_vec();
    if let Some(status) = asked.iter().find_map(|numbers| call(now, numbers[0], 0, 0.0).err()) {
        return failed(status);
    }
    let settled = with_limits(|known| {
        let mut members = Vec::with_capacity(asked.len());
        for ((limit, key), numbers) in limits.iter().zip(keys).zip(&asked) {
            let limit = known.get(*limit as usize).ok_or(BROKEN)?;
            let key = key.as_ref().map(KeyBytes::as_slice);
            members.push(Member { limit, key, count: numbers[0], reserve: numbers[1] == 1.0, random: numbers[2] });
        }
        take(&members, now)
    });
    match settled {
        Ok((ok, retry_at, decisions)) => {
            tell_all(&decisions, answers);
            vec![f64::from(u32::from(ok) * OK), retry_at.unwrap_or(f64::NAN)]
        }
        Err(status) => failed(status),
    }
}

/// Takes from all limits or from none (without `takes`: only tells). Per request: its limit, where its key ends in
/// `units`, and in `answers` on the way in its count, whether tokens may be owed (1) and a random number, on the way
/// out its numbers, with its status word as the eighth. Returns the status of the whole and its retryAt (NaN: none).
#[napi(catch_unwind)]
pub(crate) fn all(
    limits: Uint32Array,
    units: Uint16Array,
    ends: Uint32Array,
    mut answers: Float64Array,
    now: f64,
    takes: bool,
) -> Result<Vec<f64>> {
    let keys = keys(&units, &ends)?;
    // Safety: nobody else has the array while this call runs: JavaScript waits for it.
    let answers = unsafe { answers.as_mut() };
    let take = |members: &[Member<'_>], now| table().map(|table| table.take_all(members, now, takes)).ok_or(BROKEN);
    Ok(settle(&limits, &keys, answers, now, take))
}

/// One call each on many keys of one limit, each by itself. `answers` takes eight doubles per key, its status word as
/// the eighth; the first of each is its random number on the way in. Returns the status word of the numbers.
#[napi(catch_unwind)]
pub(crate) fn many(
    limit: u32,
    units: Uint16Array,
    ends: Uint32Array,
    mut answers: Float64Array,
    now: f64,
    count: f64,
    flags: u32,
) -> Result<u32> {
    let keys = keys(&units, &ends)?;
    let one = match call(now, count, flags, 0.0) {
        Ok(call) => call,
        Err(status) => return Ok(status),
    };
    // Safety: nobody else has the array while this call runs: JavaScript waits for it.
    let answers = unsafe { answers.as_mut() };
    let decided = with_limit(limit, |limit| {
        let table = table()?;
        for (key, place) in keys.iter().zip(answers.as_chunks_mut::<NUMBERS>().0) {
            let call = tidegate_table::Call { random: place[0], ..one };
            let decision = table.decide(limit, key.as_ref().map(KeyBytes::as_slice), call);
            place[NUMBERS - 1] = f64::from(tell(&decision, place));
        }
        Some(0)
    });
    Ok(decided.flatten().unwrap_or(BROKEN))
}
