//! Snapshots, and recovery after a power cut.
//!
//! Between two syncs the system writes pages to the disk in any order, so after a power cut the data file may mix
//! different moments. It is replaced by the last snapshot: a copy of one moment, synced and renamed into place. A
//! killed process loses nothing, since the system has its writes.

use crate::error::FileError;
use crate::lock::{is_removed, try_lock};
use crate::options::{DEFAULT_SYNC, SyncMode};
use crate::private;
use heed::{CompactionOption, Env, WithoutTls};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const DATA: &str = "data.mdb";
const SNAPSHOT: &str = "snapshot.mdb";

pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join(DATA)
}

fn snapshot(folder: &Path) -> PathBuf {
    folder.join(SNAPSHOT)
}

/// Identity of this run of the system, from boot to shutdown. Empty if the system reports none: then a power cut is not detected,
/// and the data file is used if its pages are sound.
fn boot_id() -> String {
    #[cfg(target_os = "linux")]
    return fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default();
    #[cfg(target_os = "macos")]
    {
        let mut id = [0_u8; 64];
        let mut length = id.len();
        // Through libc: rustix has no sysctl. Safety: `length` is the size of `id`, and the name is terminated by zero.
        let status = unsafe {
            libc::sysctlbyname(
                c"kern.bootsessionuuid".as_ptr(),
                id.as_mut_ptr().cast(),
                &mut length,
                std::ptr::null_mut(),
                0,
            )
        };
        let id = id.get(..length.saturating_sub(1)).filter(|_| status == 0).unwrap_or_default();
        return String::from_utf8_lossy(id).into_owned();
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return String::new();
}

/// Writes a file and puts it in the place of another by a rename: if the process is killed meanwhile, the other remains. If
/// it fails, the new file is removed, because on a full disk it would keep the last room from other programs.
fn replace<E>(folder: &Path, new: &str, old: &str, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E>
where
    E: From<io::Error>,
{
    let new = folder.join(new);
    let mut file = private::make(&new)?;
    let replaced = write(&mut file).and_then(|()| {
        file.sync_all()?;
        fs::rename(&new, folder.join(old))?;
        Ok(sync_folder(folder)?)
    });
    if replaced.is_err() {
        let _ = fs::remove_file(&new);
    }
    replaced
}

/// Stores in the folder which run of the system writes from now on, and how it syncs. A note that is right stays, so that a
/// process can open the folder again on a full disk.
pub(crate) fn note(folder: &Path, sync: SyncMode) -> Result<(), FileError> {
    let text = format!("{}\n{sync}\n", boot_id());
    let noted = if fs::read_to_string(folder.join("run")).is_ok_and(|noted| noted == text) {
        // A process that was killed may have left it unsynced.
        sync_folder(folder)
    } else {
        replace(folder, "run.tmp", "run", |file| file.write_all(text.as_bytes()))
    };
    noted.map_err(|error| FileError::io(folder, "its note of the system's run cannot be written", &error))
}

/// Whether the processes that have the folder open sync each commit.
pub(crate) fn noted_sync(folder: &Path) -> SyncMode {
    let noted = fs::read_to_string(folder.join("run")).unwrap_or_default();
    if noted.lines().nth(1) == Some("always") { SyncMode::Always } else { DEFAULT_SYNC }
}

/// Whether the data file may mix different moments: it was written in another run of the system, without syncs.
fn doubtful(folder: &Path) -> bool {
    let noted = fs::read_to_string(folder.join("run")).unwrap_or_default();
    let then = noted.lines().next().unwrap_or_default();
    let now = boot_id();
    noted_sync(folder) != SyncMode::Always && !now.is_empty() && then != now
}

/// Replaces a missing or doubtful data file by the last snapshot. No other process may have the folder open.
pub(crate) fn restore(folder: &Path) -> Result<(), FileError> {
    let (data, snapshot) = (data(folder), snapshot(folder));
    if data.exists() && !doubtful(folder) {
        return Ok(());
    }
    let restore = || {
        if !snapshot.exists() {
            // Before the first snapshot all states are younger than the interval, so they may be lost.
            return if folder.join("run").exists() && data.exists() { fs::remove_file(&data) } else { Ok(()) };
        }
        replace(folder, "data.tmp", DATA, |file| io::copy(&mut File::open(&snapshot)?, file).map(|_| ()))
    };
    restore().map_err(|error| FileError::io(folder, "the last snapshot cannot be put in its place", &error))
}

/// Age of the last snapshot of any process; `None` if there is none, or if the clock stepped back.
fn age(folder: &Path) -> Option<Duration> {
    fs::metadata(snapshot(folder)).and_then(|found| found.modified()).ok()?.elapsed().ok()
}

/// Makes a snapshot, unless another process is still making one after this many ms. Returns whether it did.
pub(crate) fn make(folder: &Path, env: &Env<WithoutTls>, ms: u32) -> Result<bool, FileError> {
    let fail = |error: io::Error| FileError::io(folder, "a snapshot cannot be written", &error);
    let turn = private::open(&folder.join("snapshot.lock")).map_err(fail)?;
    let mut waits = 0..ms;
    while !try_lock(folder, &turn)? {
        if waits.next().is_none() {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let copied = replace(folder, "snapshot.tmp", SNAPSHOT, |file| env.copy_to_file(file, CompactionOption::Enabled));
    copied.map_err(|error| FileError::engine(folder, "a snapshot cannot be written", &error))?;
    Ok(true)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Ms that the last snapshot of a process waits for one that another process is making, which may lack its last writes.
const PATIENCE: u32 = 10_000;
/// Looks for new writes per interval between two snapshots. A write waits for at most two, and the copy.
const TICKS: u32 = 3;

/// The time between two looks for new writes, for a snapshot every `ms`.
fn tick(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms.max(TICKS) / TICKS))
}

/// Whether the last snapshot of any process is so old that the next one is due.
fn is_due(age: Option<Duration>, tick: Duration) -> bool {
    age.is_none_or(|age| age >= tick)
}

/// The thread that makes snapshots. Dropping this makes a last snapshot of writes that are in none, and ends the
/// thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    error: Arc<Mutex<Option<String>>>,
}

impl Keeper {
    pub(crate) fn start(folder: &Path, env: &Env<WithoutTls>, owner: &Arc<File>, sync: SyncMode) -> Keeper {
        let error: Arc<Mutex<Option<String>>> = Arc::default();
        let SyncMode::Every(ms) = sync else { return Keeper { stop: None, thread: None, error } };
        let (stop, stopped) = channel();
        let (env, last_error, folder) = (env.clone(), Arc::clone(&error), folder.to_owned());
        let owner = Arc::clone(owner);
        let tick = tick(ms.get());
        let run = move || {
            let mut kept = 0;
            loop {
                let last = stopped.recv_timeout(tick) != Err(RecvTimeoutError::Timeout);
                let now = env.info().last_txn_id;
                // Another process may have made one: later writes are younger than a tick.
                if now != kept && (last || is_due(age(&folder), tick)) {
                    let removed = is_removed(&folder, &owner);
                    let patience = if last { PATIENCE } else { 0 };
                    let made = if removed { Err(FileError::removed(&folder)) } else { make(&folder, &env, patience) };
                    if matches!(made, Ok(true)) {
                        kept = now;
                    }
                    let failed = made.err().map(|error| error.to_string());
                    *last_error.lock().unwrap_or_else(PoisonError::into_inner) = failed;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_write_waits_for_its_snapshot_less_than_the_interval() {
        for ms in [3, 4, 20, 1000, 3_600_000, u32::MAX] {
            let waits = 2 * tick(ms);
            assert!(waits < Duration::from_millis(u64::from(ms)), "{waits:?} of {ms} ms");
        }
        assert_eq!(tick(1), Duration::from_millis(1));
    }

    #[test]
    fn a_snapshot_is_due_when_the_last_is_as_old_as_a_tick_or_younger_than_now() {
        let folder = std::env::temp_dir().join(format!("tidegate-file-age-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let hour = Duration::from_secs(3600);
        assert_eq!(age(&folder), None);
        let file = File::create(snapshot(&folder)).expect("a file");
        file.set_modified(UNIX_EPOCH).expect("its time");
        assert!(age(&folder).is_some_and(|age| age >= hour), "{:?}", age(&folder));
        file.set_modified(UNIX_EPOCH + Duration::from_secs(4_000_000_000)).expect("its time");
        assert_eq!(age(&folder), None, "the clock stepped back");
        fs::remove_dir_all(&folder).expect("our own folder");
        let dues = [None, Some(hour), Some(hour * 2), Some(hour / 2)].map(|age| is_due(age, hour));
        assert_eq!(dues, [true, true, true, false]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_run_of_the_system_is_its_boot_id() {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("an id");
        assert_eq!(boot_id(), id.trim());
    }
}
