//! Calls on several keys: all or nothing, and batches of independent ones.

use crate::key::append;
use crate::thread::{Kept, store, with_limit, with_limits};
use napi::bindgen_prelude::{Float64Array, Uint16Array, Uint32Array};
use napi::{Error, Result};
use napi_derive::napi;
use std::ops::Range;
use tidegate_core::{Decision, check_now};
use tidegate_table::{All, Member};
use tidegate_wire::{BROKEN, NO_KEY, NUMBERS, OK, call, refuse, write_decision};

/// The keys of a call, one after another.
struct Keys {
    bytes: Vec<u8>,
    /// Where each is; `None` for an absent one.
    places: Vec<Option<Range<usize>>>,
}

impl Keys {
    /// The concatenated keys in `units`, given the end of each.
    fn read(units: &[u16], ends: &[u32]) -> Result<Keys> {
        let mut keys = Keys { bytes: Vec::with_capacity(units.len()), places: Vec::with_capacity(ends.len()) };
        let mut from = 0;
        for end in ends {
            if *end == NO_KEY {
                keys.places.push(None);
                continue;
            }
            let begins = keys.bytes.len();
            let key = units.get(from..*end as usize).and_then(|key| append(key, &mut keys.bytes));
            key.ok_or_else(|| Error::from_reason("a key is too long"))?;
            keys.places.push(Some(begins..keys.bytes.len()));
            from = *end as usize;
        }
        Ok(keys)
    }

    fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.places.iter().map(|place| place.clone().and_then(|place| self.bytes.get(place)))
    }
}

fn write_all(decisions: &[Decision], answers: &mut [f64]) {
    for (decision, place) in decisions.iter().zip(answers.as_chunks_mut::<NUMBERS>().0) {
        place[NUMBERS - 1] = f64::from(write_decision(decision, place));
    }
}

/// Takes from all members or from none; without `takes`, only decides. Each request has its limit, the end of its
/// key in `units`, and eight doubles in `answers`: as input its count and 1 if tokens may be owed, as output its
/// decision, with the status word last. Returns the status of all and their retryAt (NaN: none).
#[napi(catch_unwind)]
pub(crate) fn all(
    number: u32,
    limits: Uint32Array,
    units: Uint16Array,
    ends: Uint32Array,
    mut answers: Float64Array,
    now: f64,
    takes: bool,
) -> Result<Vec<f64>> {
    let keys = Keys::read(&units, &ends)?;
    // Safety: the call is synchronous, so JavaScript does not use the array meanwhile.
    let answers = unsafe { answers.as_mut() };
    Ok(match take_all(number, &limits, &keys, answers, now, takes) {
        Ok(All { ok, retry_at, decisions }) => {
            write_all(&decisions, answers);
            vec![f64::from(u32::from(ok) * OK), retry_at.unwrap_or(f64::NAN)]
        }
        Err(status) => vec![f64::from(status), f64::NAN],
    })
}

fn take_all(
    number: u32,
    limits: &[u32],
    keys: &Keys,
    answers: &[f64],
    now: f64,
    takes: bool,
) -> std::result::Result<All, u32> {
    let now = check_now(now).map_err(refuse)?;
    let store = store(number).ok_or(BROKEN)?;
    let requests = answers.as_chunks::<NUMBERS>().0;
    for numbers in requests {
        call(now, numbers[0], 0)?;
    }
    with_limits(|known| {
        let mut members = Vec::with_capacity(requests.len());
        for ((limit, key), numbers) in limits.iter().zip(keys.iter()).zip(requests) {
            let kept = known.get(*limit as usize).ok_or(BROKEN)?;
            members.push(Member::new(&kept.limit, key, numbers[0], numbers[1] == 1.0));
        }
        store.take_all(&members, now, takes)
    })
}

/// Takes `count` tokens from each of many keys of one limit by itself; in a folder in one transaction. `answers` takes eight
/// doubles per key, its status word as the eighth. Returns a status word.
#[napi(catch_unwind)]
pub(crate) fn many(
    limit: u32,
    units: Uint16Array,
    ends: Uint32Array,
    mut answers: Float64Array,
    now: f64,
    count: f64,
) -> Result<u32> {
    let keys = Keys::read(&units, &ends)?;
    let one = match call(now, count, 0) {
        Ok(call) => call,
        Err(status) => return Ok(status),
    };
    // Safety: the call is synchronous, so JavaScript does not use the array meanwhile.
    let answers = unsafe { answers.as_mut() };
    let keys: Vec<_> = keys.iter().collect();
    let decided = with_limit(limit, |Kept { limit, store }| store.decide_many(limit, &keys, one));
    Ok(match decided.unwrap_or(Err(BROKEN)) {
        Ok(decisions) => {
            write_all(&decisions, answers);
            0
        }
        Err(status) => status,
    })
}
