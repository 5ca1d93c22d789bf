//! Rate limit states in a local folder that all threads and processes of a machine share, exact across them.
//!
//! The engine is LMDB: readers never wait, the writer's lock is released when its holder is killed, and a commit
//! writes a few pages of a shared map. So a decision takes microseconds and no system call; SQLite makes several, for its
//! locks and its log.
//!
//! This crate adds what LMDB leaves to its user:
//! * LMDB ends the process when the disk has no block for a mapped page. Here, all blocks are reserved first, or
//!   opening fails. On file systems that write every change to new blocks (btrfs, ZFS, bcachefs) that has no effect.
//! * LMDB follows a damaged file unchecked. Here, the first process that opens the folder checks every page.
//! * Without syncs, a power cut leaves pages of different moments. Here, the last snapshot replaces such a file.
//! * A process may open an LMDB folder only once. Here, its threads share one store.
//! * LMDB grows without bound. Here, `max_keys` bounds the states: a call that adds one drops a few full ones;
//!   without room, the fullest of a bounded sample is evicted: the one that is full first. Keys that are full before a
//!   debtor do not evict it, while debtors are at most half of the states; keys that are full as late do.
//! * LMDB creates copies under the umask. Here, all files of a folder have mode 600, and files with a wider mode are
//!   set to it when the folder is opened. A new folder has mode 700.
//!
//! # Races inside LMDB
//!
//! Writers exclude each other by a robust mutex in the lock file. Readers take no lock: they read the number of the
//! newest transaction and write theirs into the table of readers, both `volatile` words of a shared map, and then read
//! pages that no writer reuses while that number is in the table. In C's memory model these are data races. They are
//! sound if an aligned word is read and written whole, and if writes become visible in their order or are fenced
//! by the mutex. LMDB relies on that on every system that it supports, and so does this crate.
//!
//! No sanitizer proves it: ThreadSanitizer does not see the memory of other processes, and LMDB's C code is built
//! without it. So a torn read has to be harmless: each row ends with a hash of its key and contents, which is checked
//! at each read. A row that was changed meanwhile is an error of that call, never a fresh key and never another's state.
//! Tests kill processes at any moment, and compare the tokens that concurrent processes are granted with those there were.
//!
//! [`tidegate_table`] makes the decision, as in memory; it is written in the same transaction.

mod disk;
mod error;
mod fork;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod lock;
mod open;
mod options;
mod private;
mod row;
mod snapshot;
mod store;
// As the files of `tests` have it, which name this crate.
#[cfg(test)]
extern crate self as tidegate_file;
#[cfg(test)]
#[path = "../tests/temporary/mod.rs"]
mod temporary;
mod transaction;
mod verify;

pub use error::FileError;
pub use open::open;
pub use options::{DEFAULT_MAX_KEYS, DEFAULT_SYNC, Options, SyncMode};
pub use store::{FileStore, Stats};

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
