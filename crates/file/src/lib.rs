//! Rate limit states in a local folder that all threads and processes of a machine share, exact across them.
//!
//! The engine is LMDB: its readers never wait, its one writer's lock passes on when the holder is killed, and a
//! commit is a few pages of a shared map, so a decision costs microseconds and no system call. Measured beside SQLite
//! (`tests/bench/file/engines`), which writes through the system and took several times as long.
//!
//! What LMDB leaves to its user is done here:
//! * A map's page that the disk cannot give ends the process: all blocks are reserved first, or opening fails.
//! * A damaged file is followed unchecked: the first process that opens the folder checks every page.
//! * Unsynced, a power cut leaves no state that ever was: then the last snapshot is put in its place.
//! * A process may open a folder once: its threads share one.
//! * It grows without bound: `max_keys` bounds it. Full states are dropped in passing, a few at a call; without room, the
//!   fullest of a bounded sample is evicted. Keys that are fuller than a debtor do not evict it; keys drained as far do.
//! * Its copies are readable by other users: all files of a folder have mode 600, whatever the umask, and those that
//!   other users can read are set to it when the folder is opened. A folder that is made has mode 700.
//!
//! A decision is made by [`tidegate_table`], as in memory, and written in the same transaction.

// Memory maps and two system calls need it.
#![deny(unsafe_op_in_unsafe_fn)]

mod disk;
mod error;
mod fork;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod open;
mod options;
mod private;
mod row;
mod snapshot;
mod store;
mod transaction;
mod verify;

pub use error::FileError;
pub use open::open;
pub use options::{DEFAULT_MAX_KEYS, DEFAULT_SYNC, Options, Sync};
pub use store::{FileStore, Stats};

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
