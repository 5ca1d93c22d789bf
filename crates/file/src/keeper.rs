//! The thread that makes snapshots, one for each folder a process has open.

use crate::options::Sync;
use crate::snapshot;
use heed::{Env, WithoutTls};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Ends its thread when it is dropped, after a last snapshot of what is not in one yet.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    error: Arc<Mutex<Option<String>>>,
}

impl Keeper {
    pub(crate) fn start(folder: &Path, env: &Env<WithoutTls>, sync: Sync) -> Keeper {
        let error: Arc<Mutex<Option<String>>> = Arc::default();
        let Sync::Every(ms) = sync else { return Keeper { stop: None, thread: None, error } };
        let (stop, stopped) = channel();
        let (env, told, folder) = (env.clone(), Arc::clone(&error), folder.to_owned());
        // A commit waits for at most two of them, and for the copy: less than the interval.
        let tick = Duration::from_millis(u64::from(ms.max(3)) / 3);
        let run = move || {
            let mut kept = 0;
            loop {
                let last = stopped.recv_timeout(tick) != Err(RecvTimeoutError::Timeout);
                let _ = env.clear_stale_readers();
                let now = env.info().last_txn_id;
                // Another process may have made one: then what came since is younger than a tick.
                let due = last || snapshot::age(&folder).is_none_or(|age| age >= tick);
                if now != kept && due {
                    let made = snapshot::make(&folder, &env);
                    if matches!(made, Ok(true)) {
                        kept = now;
                    }
                    let failed = made.err().map(|error| error.to_string());
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = failed;
                }
                if last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("tidegate-file".into()).spawn(run);
        if let Err(failed) = &thread {
            *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("no thread for snapshots: {failed}"));
        }
        Keeper { stop: Some(stop), thread: thread.ok(), error }
    }

    pub(crate) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && !crate::fork::forked()
        {
            let _ = thread.join();
        }
    }
}
