//! The folders that this thread has open.

use crate::decide::Target;
use crate::key::KeyBytes;
use crate::several::{keys, settle, tell_all};
use crate::shared::{borrow, key_of, limit_under};
use crate::thread::{with_limit, with_numbers};
use napi::bindgen_prelude::{Float64Array, Uint16Array, Uint32Array};
use napi::{Error, Result};
use napi_derive::napi;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tidegate_core::{Decision, check_now};
use tidegate_file::{FileError, FileStore, Options, Sync, open};
use tidegate_table::wire::{BROKEN, NUMBERS, call, refuse};
use tidegate_table::{Call, Limit, Member};

/// The folder could not be used; [`file_fault`] tells why.
const FAILED: u32 = 1 << 11;

thread_local! {
    static OPEN: RefCell<Vec<Option<Arc<FileStore>>>> = const { RefCell::new(Vec::new()) };
    static FAULT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn failed(error: &FileError) -> u32 {
    FAULT.set(error.to_string());
    FAILED
}

/// Runs on the folder of this number; closed ones fail too.
fn with_store<R>(
    store: u32,
    run: impl FnOnce(&FileStore) -> std::result::Result<R, FileError>,
) -> std::result::Result<R, u32> {
    // The table of them is not held meanwhile, and what is closed meanwhile is closed afterwards.
    let found = OPEN.with_borrow(|open| open.get(store as usize).cloned().flatten());
    let Some(found) = found else {
        FAULT.set("it was closed; open it again".into());
        return Err(FAILED);
    };
    run(&found).map_err(|error| failed(&error))
}

/// The folder of this number, as the target of a call.
#[derive(Clone, Copy)]
pub(crate) struct InFolder(pub(crate) u32);

impl Target for InFolder {
    fn decide(self, limit: &Limit, key: Option<&[u8]>, call: Call) -> std::result::Result<Decision, u32> {
        with_store(self.0, |store| store.decide(limit, key, call))
    }
}

/// Opens the folder, with this thread's eight doubles for numbers. `max_keys` of 0 and a negative `sync` say nothing, a
/// `sync` of 0 says always, another says every so many ms. Returns its number on this thread.
#[napi(catch_unwind)]
pub(crate) fn file_open(numbers: Float64Array, path: String, max_keys: u32, sync: f64) -> Result<u32> {
    borrow(numbers)?;
    let every = |ms: u32| if ms == 0 { Sync::Always } else { Sync::Every(ms) };
    let sync = (sync >= 0.0).then(|| every(sync as u32));
    let options = Options { max_keys: (max_keys > 0).then_some(max_keys), sync };
    let store = open(Path::new(&path), options).map_err(|error| Error::from_reason(error.to_string()))?;
    Ok(OPEN.with_borrow_mut(|open| {
        open.push(Some(store));
        (open.len() - 1) as u32
    }))
}

/// Closes it for this thread; the last one of the process makes a snapshot.
#[napi(catch_unwind)]
pub(crate) fn file_close(store: u32) {
    drop(OPEN.with_borrow_mut(|open| open.get_mut(store as usize).and_then(Option::take)));
}

/// Why the last call that failed did.
#[napi(catch_unwind)]
#[must_use]
pub(crate) fn file_fault() -> String {
    FAULT.take()
}

/// As `limitNew`, for this folder.
#[napi(catch_unwind)]
pub(crate) fn file_limit_new(store: u32, name: String, kind: u32, given: u32) -> i32 {
    match with_store(store, |store| Ok(store.secret())) {
        Ok(secret) => limit_under(Some(secret), &name, kind, given),
        Err(status) => -(status as i32),
    }
}

/// As `all`.
#[napi(catch_unwind)]
pub(crate) fn file_all(
    store: u32,
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
    let take = |members: &[Member<'_>], now| with_store(store, |store| store.take_all(members, now, takes));
    Ok(settle(&limits, &keys, answers, now, take))
}

/// As `many`, in one transaction.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn file_many(
    store: u32,
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
    let randoms = answers.as_chunks::<NUMBERS>().0.iter().map(|numbers| numbers[0]);
    let asked: Vec<_> = keys.iter().map(|key| key.as_ref().map(KeyBytes::as_slice)).zip(randoms).collect();
    let decided = with_limit(limit, |limit| with_store(store, |store| store.decide_many(limit, &asked, one)));
    Ok(match decided {
        Some(Ok(decisions)) => {
            tell_all(&decisions, answers);
            0
        }
        Some(Err(status)) => status,
        None => BROKEN,
    })
}

/// As `value`.
#[napi(catch_unwind)]
pub(crate) fn file_value(store: u32, limit: u32, key: Option<Uint16Array>, now: f64) -> Result<u32> {
    let now = match check_now(now) {
        Ok(now) => now,
        Err(error) => return Ok(refuse(error)),
    };
    let key = key_of(key.as_deref())?;
    let key = key.as_ref().map(KeyBytes::as_slice);
    let state = with_limit(limit, |limit| with_store(store, |store| store.value(limit, key, now)));
    Ok(match state {
        Some(Ok(state)) => with_numbers(|numbers| {
            (numbers[0], numbers[1]) = (state.value(), state.ts());
            0
        })
        .unwrap_or(BROKEN),
        Some(Err(status)) => status,
        None => BROKEN,
    })
}

/// As `reset`.
#[napi(catch_unwind)]
pub(crate) fn file_reset(store: u32, limit: u32, key: Option<Uint16Array>) -> Result<u32> {
    let key = key_of(key.as_deref())?;
    let key = key.as_ref().map(KeyBytes::as_slice);
    let done = with_limit(limit, |limit| with_store(store, |store| store.reset(limit, key)));
    Ok(done.map_or(BROKEN, |done| done.map_or_else(|status| status, |()| 0)))
}

/// What the folder holds and has dropped.
#[napi(object)]
pub(crate) struct FileStats {
    /// States held now.
    pub keys: f64,
    /// The most it may hold.
    pub max_keys: f64,
    /// Dropped by this process, not full.
    pub evicted: f64,
    /// Dropped by this process, full.
    pub expired: f64,
    /// Bytes of the data file.
    pub bytes: f64,
    /// Why the last snapshot could not be made.
    pub sync_error: Option<String>,
}

/// What it holds and has dropped.
#[napi(catch_unwind)]
pub(crate) fn file_stats(store: u32) -> Result<FileStats> {
    let stats = with_store(store, FileStore::stats).map_err(|_| Error::from_reason(file_fault()))?;
    Ok(FileStats {
        keys: stats.keys as f64,
        max_keys: stats.max_keys as f64,
        evicted: stats.evicted as f64,
        expired: stats.expired as f64,
        bytes: stats.bytes as f64,
        sync_error: stats.sync_error,
    })
}
