//! A temporary folder for each test, and limits on it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_core::{Config, Kind, Policy};
use tidegate_file::{FileStore, Options, SyncMode, open};
use tidegate_table::{Call, Limit};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new() -> Temporary {
        let name = format!("tidegate-file-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Temporary(std::env::temp_dir().join(name))
    }

    pub(crate) fn open(&self) -> Arc<FileStore> {
        self.open_with(Options::default()).expect("a store")
    }

    pub(crate) fn open_with(&self, options: Options) -> Result<Arc<FileStore>, String> {
        open(&self.0, options).map_err(|error| error.to_string())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Syncs by a snapshot within `ms`.
pub(crate) fn every(ms: u32) -> SyncMode {
    SyncMode::Every(NonZeroU32::new(ms).expect("above 0"))
}

/// A bucket of `capacity` tokens that refills one token per hour.
pub(crate) fn bucket(store: &FileStore, capacity: f64) -> Limit {
    let config = Config { rate: 1.0, period: 3.6e6, capacity: Some(capacity), ..Config::new(Kind::TokenBucket) };
    Limit::new(store.secret(), "bucket", Policy::new(&config).expect("a legal policy"))
}

pub(crate) const NOW: f64 = 1.8e12;

/// How many requests for one token each are granted on a key.
pub(crate) fn granted(store: &FileStore, limit: &Limit, key: &str, calls: usize) -> usize {
    let ok = |_: &usize| store.decide(limit, Some(key.as_bytes()), Call::at(NOW)).expect("an answer").ok;
    (0..calls).filter(ok).count()
}

/// Takes a token of each key, and resets the first.
pub(crate) fn write(folder: &Temporary, keys: usize) {
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    for i in 0..keys {
        assert_eq!(granted(&store, &limit, &format!("key {i}"), 1), 1);
    }
    store.reset(&limit, Some(b"key 0")).expect("a reset");
}
