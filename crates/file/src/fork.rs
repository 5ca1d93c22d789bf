//! Whether this process was forked, without `exec`, from one that had a folder open: locks and maps do not survive that.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

#[cfg(unix)]
extern "C" fn child() {
    FORKED.store(true, Relaxed);
}

/// Notices forks from now on.
pub(crate) fn watch() {
    WATCH.call_once(|| {
        #[cfg(unix)]
        // By hand: rustix has no pthread_atfork, and asking for the process's id is a system call at each decision.
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
