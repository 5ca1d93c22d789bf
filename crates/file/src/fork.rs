//! Detects a process that was forked, without `exec`, from one that had a folder open: locks and maps do not survive a
//! fork.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

#[cfg(unix)]
extern "C" fn child() {
    FORKED.store(true, Relaxed);
}

/// Starts to detect forks.
pub(crate) fn watch() {
    WATCH.call_once(|| {
        #[cfg(unix)]
        // Through libc: rustix has no pthread_atfork, and comparing process ids takes a system call per decision.
        // Safety: the handler stores one atomic.
        unsafe {
            libc::pthread_atfork(None, None, Some(child));
        }
    });
}

#[inline]
pub(crate) fn forked() -> bool {
    FORKED.load(Relaxed)
}
