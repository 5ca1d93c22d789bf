//! Opening and closing stores, and the limits on them.

use crate::decide::decide;
use crate::store::{Place, Store, StoreStats, TABLE};
use crate::thread::{Kept, drop_limit, keep_limit, keep_store, live_limits, store};
use napi::bindgen_prelude::{Float64Array, JsValue, Object};
use napi::{Env, Error, Result, sys};
use napi_derive::napi;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::path::Path;
use std::ptr;
use tidegate_file::{FileError, Options, SyncMode};
use tidegate_table::{Limit, SharedTable};
use tidegate_wire::{BROKEN, NUMBERS, policy};

/// Version of the addon; the package loads only an addon of its own version.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Keeps a store with the doubles for its numbers: a `Float64Array` on its own `ArrayBuffer`.
fn opened(mut numbers: Float64Array, place: Place) -> Result<u32> {
    // Safety: the addon is called by one thread at a time, and JavaScript does not use the doubles meanwhile.
    let doubles: Option<&mut [f64; NUMBERS]> = unsafe { numbers.as_mut() }.try_into().ok();
    let at = ptr::from_mut(doubles.ok_or_else(|| Error::from_reason("eight doubles are needed for numbers"))?);
    // The reference of the wrapper is never released, so the doubles outlive the last call of the thread.
    std::mem::forget(numbers);
    // Safety: eight doubles, kept alive by the reference above; an ArrayBuffer's memory does not move.
    Ok(keep_store(unsafe { Store::new(at, place) }))
}

/// Opens the process's table, which the first call creates, for at most `max_keys` states. Each copy of the
/// package passes its own numbers. Returns the store's number on this thread.
#[napi(catch_unwind)]
pub(crate) fn open_shared(numbers: Float64Array, max_keys: u32) -> Result<u32> {
    // Random bits of the operating system, through the hasher of the standard library.
    let random = RandomState::new();
    let table = TABLE.get_or_init(|| SharedTable::new(max_keys as usize, [random.hash_one(0), random.hash_one(1)]));
    opened(numbers, Place::Table(table))
}

/// Opens a folder. A `max_keys` of 0 and a negative `sync` keep the setting; a `sync` of 0 is always, any other is the
/// ms between snapshots. Returns the store's number on this thread.
#[napi(catch_unwind)]
pub(crate) fn open_file(env: Env, numbers: Float64Array, path: String, max_keys: u32, sync: f64) -> Result<u32> {
    let sync = (sync >= 0.0).then(|| NonZeroU32::new(sync as u32).map_or(SyncMode::Always, SyncMode::Every));
    let options = Options { max_keys: NonZeroU32::new(max_keys), sync };
    let failed = |error: FileError| Error::from_reason(error.to_string());
    let folder = tidegate_file::open(Path::new(&path), options).map_err(failed)?;
    let number = opened(numbers, Place::Folder(RefCell::new(Some(folder))))?;
    // Before the thread ends. Its destructors run under a lock on Windows that the folder's thread needs to end, and closing
    // waits for that.
    env.add_env_cleanup_hook(number, close)?;
    Ok(number)
}

/// Closes a folder for this thread; the last one of the process makes a snapshot. The process's table stays open.
#[napi(catch_unwind)]
pub(crate) fn close(number: u32) {
    if let Some(store) = store(number) {
        store.close();
    }
}

/// Message of the last failed call of the store.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn fault(number: u32) -> String {
    store(number).map(|store| store.fault()).unwrap_or_default()
}

/// A limit for a store, whose numbers have the policy: see [`policy`]. Returns its number on this thread, or a negative
/// status word.
#[napi(catch_unwind)]
pub(crate) fn limit_new(number: u32, name: String, kind: u32) -> i32 {
    let made = store(number).ok_or(BROKEN).and_then(|store| {
        let policy = store.with_numbers(|numbers| policy(kind, numbers))?;
        Ok(keep_limit(Kept { limit: Limit::new(store.secret()?, name, policy), store }))
    });
    made.map_or_else(|status| -(status as i32), |limit| limit as i32)
}

/// Frees a limit whose JavaScript object was collected. Its number may be reused.
#[napi(catch_unwind)]
pub(crate) fn limit_drop(limit: u32) {
    drop_limit(limit);
}

/// Number of limits of this thread.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn limits() -> u32 {
    live_limits() as u32
}

/// Counts of a store. Throws if a folder cannot be read.
#[napi(catch_unwind)]
pub(crate) fn stats(number: u32) -> Result<StoreStats> {
    let store = store(number).ok_or_else(|| Error::from_reason("there is no such store"))?;
    store.stats().map_err(|_| Error::from_reason(store.fault()))
}

/// Adds the hot call to the exports.
#[napi(module_exports)]
pub(crate) fn exports(exports: Object<'_>, env: Env) -> Result<()> {
    let name = c"decide";
    let mut function = ptr::null_mut();
    let length = name.count_bytes() as isize;
    // Safety: `env` and `exports` are live for this call; the name has that length, and `decide` is a callback.
    let status = unsafe {
        sys::napi_create_function(env.raw(), name.as_ptr(), length, Some(decide), ptr::null_mut(), &mut function)
            | sys::napi_set_named_property(env.raw(), exports.raw(), name.as_ptr(), function)
    };
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Error::from_reason("`decide` could not be exported")) }
}
