//! The process's table, and the calls on it that are not hot.

use crate::decide::{decide, file_decide};
use crate::key::KeyBytes;
use crate::thread::{keep, lend, with_limit, with_numbers};
use napi::bindgen_prelude::{Float64Array, JsValue, Object, Uint16Array};
use napi::{Env, Error, Result, sys};
use napi_derive::napi;
use std::hash::{BuildHasher, RandomState};
use std::ptr;
use std::sync::OnceLock;
use tidegate_core::check_now;
use tidegate_table::wire::{BROKEN, NUMBERS, policy, refuse};
use tidegate_table::{Limit, SharedTable, Stats};

static TABLE: OnceLock<SharedTable> = OnceLock::new();

pub(crate) fn table() -> Option<&'static SharedTable> {
    TABLE.get()
}

/// Takes the doubles for this thread's numbers, for good.
pub(crate) fn borrow(numbers: Float64Array) -> Result<()> {
    let data = numbers.as_ref();
    if data.len() != NUMBERS {
        return Err(Error::from_reason("eight doubles are needed for numbers"));
    }
    let at = data.as_ptr() as *mut [f64; NUMBERS];
    // The reference that the wrapper holds is never given back, so the doubles outlive the thread's last call.
    std::mem::forget(numbers);
    // Safety: eight doubles, kept alive by the reference above; an ArrayBuffer's memory does not move.
    unsafe { lend(at) };
    Ok(())
}

/// The package takes an addon of its own version alone.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Makes the process's table if it is not there, and lends this thread's eight doubles for numbers: a `Float64Array` on
/// an `ArrayBuffer` of its own. Returns how many states the table may hold: as the first caller said.
#[napi(catch_unwind)]
pub(crate) fn open(numbers: Float64Array, max_keys: u32) -> Result<u32> {
    borrow(numbers)?;
    // Keys from the operating system, through the standard library's own source of them.
    let random = RandomState::new();
    let table = TABLE.get_or_init(|| SharedTable::new(max_keys as usize, [random.hash_one(0), random.hash_one(1)]));
    Ok(u32::try_from(table.stats().max_keys).unwrap_or(u32::MAX))
}

/// A limit on this thread; its policy's numbers are rate, period, capacity, maxReserved, start and shards, the first
/// six numbers. Returns its number, or a negative status word.
#[napi(catch_unwind)]
pub(crate) fn limit_new(name: String, kind: u32, given: u32) -> i32 {
    limit_under(table().map(SharedTable::secret), &name, kind, given)
}

pub(crate) fn limit_under(secret: Option<[u64; 2]>, name: &str, kind: u32, given: u32) -> i32 {
    let made = with_numbers(|[rate, period, capacity, max_reserved, start, shards, ..]| {
        policy(kind, given, [*rate, *period, *capacity, *max_reserved, *start, *shards]).map_err(refuse)
    });
    match (made, secret) {
        (Some(Ok(policy)), Some(secret)) => keep(Limit::new(secret, name, policy)) as i32,
        (Some(Err(status)), _) => -(status as i32),
        _ => -(BROKEN as i32),
    }
}

/// The key's UTF-16 units, or none.
pub(crate) fn key_of(units: Option<&[u16]>) -> Result<Option<KeyBytes>> {
    match units.map(KeyBytes::of) {
        Some(None) => Err(Error::from_reason("the key is too long")),
        Some(key) => Ok(key),
        None => Ok(None),
    }
}

/// The limit's two numbers at `now`, as the first two numbers. Returns a status word.
#[napi(catch_unwind)]
pub(crate) fn value(limit: u32, key: Option<Uint16Array>, now: f64) -> Result<u32> {
    let now = match check_now(now) {
        Ok(now) => now,
        Err(error) => return Ok(refuse(error)),
    };
    let key = key_of(key.as_deref())?;
    let state = table()
        .and_then(|table| with_limit(limit, |limit| table.value(limit, key.as_ref().map(KeyBytes::as_slice), now)));
    let told = state.and_then(|state| {
        with_numbers(|numbers| {
            numbers[0] = state.value();
            numbers[1] = state.ts();
            0
        })
    });
    Ok(told.unwrap_or(BROKEN))
}

/// Forgets the limit on this key. Returns a status word.
#[napi(catch_unwind)]
pub(crate) fn reset(limit: u32, key: Option<Uint16Array>) -> Result<u32> {
    let key = key_of(key.as_deref())?;
    let done =
        table().and_then(|table| with_limit(limit, |limit| table.reset(limit, key.as_ref().map(KeyBytes::as_slice))));
    Ok(done.map_or(BROKEN, |()| 0))
}

/// keys, maxKeys, evicted, expired and bytes of the process's table.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn stats() -> Vec<f64> {
    let Stats { keys, max_keys, evicted, expired, bytes } = table().map(SharedTable::stats).unwrap_or_default();
    vec![keys as f64, max_keys as f64, evicted as f64, expired as f64, bytes as f64]
}

/// Adds the hot calls to the exports.
#[napi(module_exports)]
pub(crate) fn exports(exports: Object<'_>, env: Env) -> Result<()> {
    for (name, call) in [(c"decide", decide as Call), (c"fileDecide", file_decide)] {
        let mut function = ptr::null_mut();
        let length = name.count_bytes() as isize;
        // Safety: `env` and `exports` are live for this call; the name is as long as is said, and `call` is a callback.
        let status = unsafe {
            sys::napi_create_function(env.raw(), name.as_ptr(), length, Some(call), ptr::null_mut(), &mut function)
                | sys::napi_set_named_property(env.raw(), exports.raw(), name.as_ptr(), function)
        };
        if status != sys::Status::napi_ok {
            return Err(Error::from_reason("the addon's calls could not be exported"));
        }
    }
    Ok(())
}

type Call = extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;
