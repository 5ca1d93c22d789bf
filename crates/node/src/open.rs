//! Opening and closing stores, and the limits on them.

use crate::decide::decide;
use crate::store::{Place, Store, StoreStats, TABLE};
use crate::thread::{Kept, drop_limit, keep_limit, keep_store, live_limits, store};
use napi::bindgen_prelude::{JsValue, Object, Unknown};
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

/// Keeps a store. Returns its number on this thread, and the doubles for the numbers of its calls, whose first is that number.
///
/// The doubles are kept, so they are made here, in the realm that loaded the addon: an array that JavaScript passed would keep its
/// realm, such as that of a test file in Jest.
fn opened(env: &Env, place: Place) -> Result<(u32, Unknown<'_>)> {
    let (raw, bytes) = (env.raw(), NUMBERS * size_of::<f64>());
    let (mut doubles, mut buffer, mut array, mut kept) =
        (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // Safety: `env` is live for this call. Of a buffer that could not be made, no array is made.
    let status = unsafe {
        sys::napi_create_arraybuffer(raw, bytes, &mut doubles, &mut buffer)
            | sys::napi_create_typedarray(raw, sys::TypedarrayType::float64_array, NUMBERS, buffer, 0, &mut array)
            | sys::napi_create_reference(raw, array, 1, &mut kept)
    };
    if status != sys::Status::napi_ok {
        return Err(Error::from_reason("there is no memory for the numbers of a store"));
    }
    let doubles: *mut [f64; NUMBERS] = doubles.cast();
    // Safety: eight doubles, kept alive by a reference that is never released; an ArrayBuffer's memory does not move. The addon
    // is called by one thread at a time, and JavaScript does not use them meanwhile.
    let number = keep_store(unsafe { Store::new(doubles, place) });
    // Safety: as above, and no call is under way.
    unsafe { (*doubles)[0] = f64::from(number) };
    // Safety: a value of this call.
    Ok((number, unsafe { Unknown::from_raw_unchecked(raw, array) }))
}

/// Opens the process's table, which the first call creates, for at most `max_keys` states. Returns the
/// numbers of a new store: see [`opened`].
#[napi(catch_unwind)]
pub(crate) fn open_shared(env: &Env, max_keys: u32) -> Result<Unknown<'_>> {
    // Random bits of the operating system, through the hasher of the standard library.
    let random = RandomState::new();
    let table = TABLE.get_or_init(|| SharedTable::new(max_keys as usize, [random.hash_one(0), random.hash_one(1)]));
    Ok(opened(env, Place::Table(table))?.1)
}

/// Opens a folder. A `max_keys` of 0 and a negative `sync` keep the setting; a `sync` of 0 is always, any other is the
/// ms between snapshots. Returns the numbers of a new store: see [`opened`].
#[napi(catch_unwind)]
pub(crate) fn open_file(env: &Env, path: String, max_keys: u32, sync: f64) -> Result<Unknown<'_>> {
    let sync = (sync >= 0.0).then(|| NonZeroU32::new(sync as u32).map_or(SyncMode::Always, SyncMode::Every));
    let options = Options { max_keys: NonZeroU32::new(max_keys), sync };
    let failed = |error: FileError| Error::from_reason(error.to_string());
    let folder = tidegate_file::open(Path::new(&path), options).map_err(failed)?;
    let (number, numbers) = opened(env, Place::Folder(RefCell::new(Some(folder))))?;
    // Before the thread ends. Its destructors run under a lock on Windows that the folder's thread needs to end, and closing
    // waits for that.
    env.add_env_cleanup_hook(number, close)?;
    Ok(numbers)
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
