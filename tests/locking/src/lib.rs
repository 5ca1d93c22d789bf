//! The sources of the table, with the locks of a scheduler in place of the system's.

extern crate alloc;

#[path = "../../../crates/table/src"]
#[allow(dead_code, reason = "the rest of the table")]
mod sources {
    pub(crate) mod call;
    pub(crate) mod limit;
    pub(crate) mod packed;
    pub(crate) mod segment;
    pub(crate) mod shared;
    pub(crate) mod table;
}

mod sync {
    pub(crate) use shuttle::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    };
}

pub use call::{Call, Member};
pub use limit::Limit;
pub use shared::SharedTable;
use sources::{call, limit, packed, segment, shared, table};
