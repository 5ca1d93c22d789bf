//! A store as JavaScript has it: the numbers that its calls pass, and where its states are.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use tidegate_core::Decision;
use tidegate_file::{FileError, FileStore, Stats};
use tidegate_table::wire::{FAILED, NUMBERS};
use tidegate_table::{All, Call, Limit, Member, SharedTable};

/// The table of the process.
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
    /// The doubles at `numbers` must stay where they are for as long as the thread calls the addon, and only this store
    /// may use them.
    pub(crate) unsafe fn new(numbers: *mut [f64; NUMBERS], place: Place) -> Store {
        Store { numbers, place, fault: RefCell::default() }
    }

    /// Runs with the store's numbers.
    #[inline]
    pub(crate) fn with_numbers<R>(&self, run: impl FnOnce(&mut [f64; NUMBERS]) -> R) -> R {
        // Safety: as `new` requires; only this thread uses them, and `run` neither calls JavaScript nor this again.
        run(unsafe { &mut *self.numbers })
    }

    /// Runs on the folder; a failure is a status word, and [`Store::fault`] has its text.
    fn folder<R>(
        &self,
        folder: &RefCell<Option<Arc<FileStore>>>,
        run: impl FnOnce(&FileStore) -> Result<R, FileError>,
    ) -> Result<R, u32> {
        let Some(found) = folder.borrow().clone() else {
            self.fault.replace("it was closed; open it again".into());
            return Err(FAILED);
        };
        run(&found).map_err(|error| {
            self.fault.replace(error.to_string());
            FAILED
        })
    }

    /// Why the last call that failed did.
    pub(crate) fn fault(&self) -> String {
        self.fault.take()
    }

    pub(crate) fn close(&self) {
        if let Place::Folder(folder) = &self.place {
            drop(folder.take());
        }
    }

    pub(crate) fn secret(&self) -> Result<[u64; 2], u32> {
        match &self.place {
            Place::Table(table) => Ok(table.secret()),
            Place::Folder(folder) => self.folder(folder, |store| Ok(store.secret())),
        }
    }

    #[inline(always)]
    pub(crate) fn decide(&self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Result<Decision, u32> {
        match &self.place {
            Place::Table(table) => Ok(table.decide(limit, key, call)),
            Place::Folder(folder) => self.folder(folder, |store| store.decide(limit, key, call)),
        }
    }

    /// One call each on many keys, each by itself; in a folder in one transaction.
    pub(crate) fn decide_many(&self, limit: &Limit, keys: &[Option<&[u8]>], call: Call) -> Result<Vec<Decision>, u32> {
        match &self.place {
            Place::Table(table) => Ok(keys.iter().map(|key| table.decide(limit, *key, call)).collect()),
            Place::Folder(folder) => self.folder(folder, |store| store.decide_many(limit, keys, call)),
        }
    }

    pub(crate) fn take_all(&self, members: &[Member], now: f64, takes: bool) -> Result<All, u32> {
        match &self.place {
            Place::Table(table) => Ok(table.take_all(members, now, takes)),
            Place::Folder(folder) => self.folder(folder, |store| store.take_all(members, now, takes)),
        }
    }

    pub(crate) fn reset(&self, limit: &Limit, key: Option<&[u8]>) -> Result<(), u32> {
        match &self.place {
            Place::Table(table) => {
                table.reset(limit, key);
                Ok(())
            }
            Place::Folder(folder) => self.folder(folder, |store| store.reset(limit, key)),
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats, u32> {
        match &self.place {
            Place::Table(table) => {
                let stats = table.stats();
                Ok(Stats {
                    keys: stats.keys as u64,
                    max_keys: stats.max_keys as u64,
                    evicted: stats.evicted,
                    expired: stats.expired,
                    bytes: stats.bytes as u64,
                    sync_error: None,
                })
            }
            Place::Folder(folder) => self.folder(folder, |store| store.stats()),
        }
    }
}
