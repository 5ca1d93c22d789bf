//! The locks and counters of [`SharedTable`](crate::SharedTable): the system's, or a scheduler's, in tests/locking.

pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};
