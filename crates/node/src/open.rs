//! Opening and closing stores, and the limits on them.

use crate::decide::decide;
use crate::store::{Place, Store, TABLE};
use crate::thread::{Kept, drop_limit, keep_limit, keep_store, live_limits, store};
use napi::bindgen_prelude::{Float64Array, JsValue, Object};
use napi::{Env, Error, Result, sys};
use napi_derive::napi;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::ptr;
use tidegate_file::{FileError, Options, Sync};
use tidegate_table::wire::{BROKEN, NUMBERS, policy, refuse};
use tidegate_table::{Limit, SharedTable};

/// The package takes an addon of its own version alone.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Keeps a store with the doubles for its numbers: a `Float64Array` on an `ArrayBuffer` of its own.
fn opened(numbers: Float64Array, place: Place) -> Result<u32> {
    let data = numbers.as_ref();
    if data.len() != NUMBERS {
        return Err(Error::from_reason("eight doubles are needed for numbers"));
    }
    let at = data.as_ptr() as *mut [f64; NUMBERS];
    // The reference that the wrapper holds is never given back, so the doubles outlive the thread's last call.
    std::mem::forget(numbers);
    // Safety: eight doubles, kept alive by the reference above; an ArrayBuffer's memory does not move.
    Ok(keep_store(unsafe { Store::new(at, place) }))
}

/// Opens the process's table, and makes it where there is none: then it holds at most `max_keys` states. Each copy of
/// the package has numbers of its own. Returns the store's number on this thread.
#[napi(catch_unwind)]
pub(crate) fn open_shared(numbers: Float64Array, max_keys: u32) -> Result<u32> {
    // Keys from the operating system, through the standard library's own source of them.
    let random = RandomState::new();
    let table = TABLE.get_or_init(|| SharedTable::new(max_keys as usize, [random.hash_one(0), random.hash_one(1)]));
    opened(numbers, Place::Table(table))
}

/// Opens a folder. `max_keys` of 0 and a negative `sync` leave the setting as it is; a `sync` of 0 is always, another is
/// the ms between snapshots. Returns the store's number on this thread.
#[napi(catch_unwind)]
pub(crate) fn open_file(numbers: Float64Array, path: String, max_keys: u32, sync: f64) -> Result<u32> {
    let every = |ms: u32| if ms == 0 { Sync::Always } else { Sync::Every(ms) };
    let sync = (sync >= 0.0).then(|| every(sync as u32));
    let options = Options { max_keys: (max_keys > 0).then_some(max_keys), sync };
    let failed = |error: FileError| Error::from_reason(error.to_string());
    let folder = tidegate_file::open(Path::new(&path), options).map_err(failed)?;
    opened(numbers, Place::Folder(RefCell::new(Some(folder))))
}

/// Closes a folder for this thread; the last one of the process makes a snapshot. The process's table stays open.
#[napi(catch_unwind)]
pub(crate) fn close(number: u32) {
    if let Some(store) = store(number) {
        store.close();
    }
}

/// Why the store's last call that failed did.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn fault(number: u32) -> String {
    store(number).map(|store| store.fault()).unwrap_or_default()
}

/// A limit for a store; its policy's numbers are rate, period, capacity, maxReserved, start and shards, the store's first
/// six numbers. Returns its number on this thread, or a negative status word.
#[napi(catch_unwind)]
pub(crate) fn limit_new(number: u32, name: String, kind: u32) -> i32 {
    let made = store(number).ok_or(BROKEN).and_then(|store| {
        let policy = store.with_numbers(|[rate, period, capacity, max_reserved, start, shards, ..]| {
            policy(kind, [*rate, *period, *capacity, *max_reserved, *start, *shards]).map_err(refuse)
        })?;
        Ok(keep_limit(Kept { limit: Limit::new(store.secret()?, name, policy), store }))
    });
    made.map_or_else(|status| -(status as i32), |limit| limit as i32)
}

/// Forgets a limit: what held it was collected. Its number may be given again.
#[napi(catch_unwind)]
pub(crate) fn limit_drop(limit: u32) {
    drop_limit(limit);
}

/// How many limits this thread keeps.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn limits() -> u32 {
    live_limits() as u32
}

/// What a store holds and has dropped.
#[napi(object)]
pub(crate) struct StoreStats {
    /// States held now.
    pub keys: f64,
    /// The most it may hold.
    pub max_keys: f64,
    /// Dropped by this process, not full.
    pub evicted: f64,
    /// Dropped by this process, full.
    pub expired: f64,
    /// Bytes of the table, or of the data file.
    pub bytes: f64,
    /// Why the last snapshot could not be made.
    pub sync_error: Option<String>,
}

/// What it holds and has dropped. Throws where a folder cannot be read.
#[napi(catch_unwind)]
pub(crate) fn stats(number: u32) -> Result<StoreStats> {
    let store = store(number).ok_or_else(|| Error::from_reason("there is no such store"))?;
    let stats = store.stats().map_err(|_| Error::from_reason(store.fault()))?;
    Ok(StoreStats {
        keys: stats.keys as f64,
        max_keys: stats.max_keys as f64,
        evicted: stats.evicted as f64,
        expired: stats.expired as f64,
        bytes: stats.bytes as f64,
        sync_error: stats.sync_error,
    })
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
