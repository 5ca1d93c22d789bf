//! The calls on one key that are not hot.

use crate::key::KeyBytes;
use crate::thread::{Kept, with_limit};
use napi::bindgen_prelude::Uint16Array;
use napi::{Error, Result};
use napi_derive::napi;
use tidegate_core::check_now;
use tidegate_table::wire::{BROKEN, refuse};

/// The key's UTF-16 units, or none.
fn key_of(units: Option<&[u16]>) -> Result<Option<KeyBytes>> {
    match units.map(KeyBytes::of) {
        Some(None) => Err(Error::from_reason("the key is too long")),
        Some(key) => Ok(key),
        None => Ok(None),
    }
}

/// The limit's two numbers at `now`, as the first two numbers of its store. Returns a status word.
#[napi(catch_unwind)]
pub(crate) fn value(limit: u32, key: Option<Uint16Array>, now: f64) -> Result<u32> {
    let now = match check_now(now) {
        Ok(now) => now,
        Err(error) => return Ok(refuse(error)),
    };
    let key = key_of(key.as_deref())?;
    let read = |Kept { limit, store }: &Kept| {
        let state = store.value(limit, key.as_ref().map(KeyBytes::as_slice), now)?;
        store.with_numbers(|numbers| (numbers[0], numbers[1]) = (state.value(), state.ts()));
        Ok(())
    };
    Ok(status(with_limit(limit, read)))
}

/// Forgets the limit on this key. Returns a status word.
#[napi(catch_unwind)]
pub(crate) fn reset(limit: u32, key: Option<Uint16Array>) -> Result<u32> {
    let key = key_of(key.as_deref())?;
    let forget = |Kept { limit, store }: &Kept| store.reset(limit, key.as_ref().map(KeyBytes::as_slice));
    Ok(status(with_limit(limit, forget)))
}

/// 0, or the status word of what failed.
fn status(done: Option<std::result::Result<(), u32>>) -> u32 {
    done.unwrap_or(Err(BROKEN)).err().unwrap_or(0)
}
