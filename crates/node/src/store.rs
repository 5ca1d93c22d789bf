//! A store of JavaScript: the numbers that its calls pass, and its table or folder.

use napi_derive::napi;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use tidegate_core::Decision;
use tidegate_file::{FileError, FileStore};
use tidegate_table::{All, Call, Limit, Member, SharedTable};
use tidegate_wire::{FAILED, NUMBERS};

pub(crate) static TABLE: OnceLock<SharedTable> = OnceLock::new();

/// Where the states are.
pub(crate) enum Place {
    Table(&'static SharedTable),
    /// `None` once it is closed.
    Folder(RefCell<Option<Arc<FileStore>>>),
}

/// One store that a copy of the package has opened on this thread.
pub(crate) struct Store {
    numbers: *mut [f64; NUMBERS],
    place: Place,
    fault: RefCell<String>,
}

impl Store {
    /// # Safety
    /// The doubles at `numbers` must not move or be freed while the thread calls the addon, and only this store may use
    /// them.
    pub(crate) unsafe fn new(numbers: *mut [f64; NUMBERS], place: Place) -> Store {
        Store { numbers, place, fault: RefCell::default() }
    }

    #[inline]
    pub(crate) fn with_numbers<R>(&self, run: impl FnOnce(&mut [f64; NUMBERS]) -> R) -> R {
        // Safety: as `new` requires; only this thread uses them, and `run` neither calls JavaScript nor this function.
        run(unsafe { &mut *self.numbers })
    }

    /// Runs on the table or on the folder. A failure of the folder is a status word, and [`Store::fault`] has its text.
    #[inline(always)]
    fn on<R>(
        &self,
        table: impl FnOnce(&SharedTable) -> R,
        folder: impl FnOnce(&FileStore) -> Result<R, FileError>,
    ) -> Result<R, u32> {
        match &self.place {
            Place::Table(found) => Ok(table(found)),
            Place::Folder(found) => {
                let result = match found.borrow().as_deref() {
                    Some(found) => folder(found).map_err(|error| error.to_string()),
                    None => Err("it was closed; open it again".to_owned()),
                };
                result.map_err(|fault| {
                    self.fault.replace(fault);
                    FAILED
                })
            }
        }
    }

    /// Message of the last failed call.
    pub(crate) fn fault(&self) -> String {
        self.fault.take()
    }

    pub(crate) fn close(&self) {
        if let Place::Folder(folder) = &self.place {
            drop(folder.take());
        }
    }

    pub(crate) fn secret(&self) -> Result<[u64; 2], u32> {
        self.on(SharedTable::secret, |folder| Ok(folder.secret()))
    }

    #[inline(always)]
    pub(crate) fn decide(&self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Result<Decision, u32> {
        self.on(|table| table.decide(limit, key, call), |folder| folder.decide(limit, key, call))
    }

    /// One independent call on each of many keys; in a folder in one transaction.
    pub(crate) fn decide_many(&self, limit: &Limit, keys: &[Option<&[u8]>], call: Call) -> Result<Vec<Decision>, u32> {
        self.on(
            |table| keys.iter().map(|key| table.decide(limit, *key, call)).collect(),
            |folder| folder.decide_many(limit, keys, call),
        )
    }

    pub(crate) fn take_all(&self, members: &[Member], now: f64, takes: bool) -> Result<All, u32> {
        self.on(|table| table.take_all(members, now, takes), |folder| folder.take_all(members, now, takes))
    }

    pub(crate) fn reset(&self, limit: &Limit, key: Option<&[u8]>) -> Result<(), u32> {
        self.on(|table| table.reset(limit, key), |folder| folder.reset(limit, key))
    }

    pub(crate) fn stats(&self) -> Result<StoreStats, u32> {
        self.on(|table| table.stats().into(), |folder| Ok(folder.stats()?.into()))
    }
}

/// Counts of the states that a store holds and has dropped.
#[napi(object)]
pub(crate) struct StoreStats {
    /// States held now.
    pub keys: f64,
    /// The most it may hold.
    pub max_keys: f64,
    /// States that this process evicted before they were full.
    pub evicted: f64,
    /// Full states that this process dropped.
    pub expired: f64,
    /// Bytes of the table, or of the data file.
    pub bytes: f64,
    /// The error of the last snapshot, if it failed.
    pub sync_error: Option<String>,
}

impl From<tidegate_table::Stats> for StoreStats {
    fn from(stats: tidegate_table::Stats) -> StoreStats {
        StoreStats {
            keys: stats.keys as f64,
            max_keys: stats.max_keys as f64,
            evicted: stats.evicted as f64,
            expired: stats.expired as f64,
            bytes: stats.bytes as f64,
            sync_error: None,
        }
    }
}

impl From<tidegate_file::Stats> for StoreStats {
    fn from(stats: tidegate_file::Stats) -> StoreStats {
        StoreStats {
            keys: stats.keys as f64,
            max_keys: stats.max_keys as f64,
            evicted: stats.evicted as f64,
            expired: stats.expired as f64,
            bytes: stats.bytes as f64,
            sync_error: stats.sync_error,
        }
    }
}
