//! Opening a folder: the first process checks it, repairs it and writes its settings; later ones join.

use crate::disk;
use crate::error::FileError;
use crate::fork;
use crate::lock::{self, OWNER, is_removed, try_lock};
use crate::options::{self, DEFAULT_MAX_KEYS, DEFAULT_SYNC, Options, Settings, SyncMode, map_size};
use crate::private;
use crate::row;
use crate::snapshot;
use crate::store::{FileStore, Opened};
use crate::transaction::{FRESH_FROM, Rows};
use crate::verify::{HEAD, used, verify};
use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};
use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to wait for another process that is checking the folder, or a thread that makes its last snapshot.
const PATIENCE: Duration = Duration::from_secs(30);
/// Room for about 1,000 concurrent reads: LMDB takes as many as the lock file has places for.
const LOCK_BYTES: u64 = 1 << 16;

/// The folders that this process has open. It opens each once: LMDB's locks belong to the process, and closing a second
/// environment would release the locks of the first.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<FileStore>>>> = LazyLock::new(Mutex::default);

/// Opens the folder at `path`, or returns the store that this process already has open. A missing folder is created.
///
/// # Errors
/// If the path is not a folder, may not be written to, is on a network file system or a full disk, is corrupt, or is
/// open with other settings. The error has the remedy.
pub fn open(path: &Path, options: Options) -> Result<Arc<FileStore>, FileError> {
    fork::watch();
    if fork::forked() {
        let what = "this process was forked from one that had a folder open; start it as a separate program";
        return Err(FileError::new(path, what));
    }
    let fail = |error| FileError::io(path, "the folder cannot be used", &error);
    private::make_folder(path).map_err(fail)?;
    let folder = fs::canonicalize(path).map_err(fail)?;
    let mut registry = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = registry.get(&folder).and_then(Weak::upgrade) {
        agree(&folder, options, store.settings())?;
        if is_removed(&folder, store.owner()) {
            return Err(FileError::removed(&folder));
        }
        return Ok(store);
    }
    registry.retain(|_, store| store.strong_count() > 0);
    let store = Arc::new(FileStore::new(&folder, open_folder(&folder, options)?));
    registry.insert(folder, Arc::downgrade(&store));
    Ok(store)
}

/// Opens an existing folder, one process at a time. All processes that have it open share the owner's lock, so a
/// process that can lock it exclusively is the only one.
fn open_folder(folder: &Path, wanted: Options) -> Result<Opened, FileError> {
    disk::refuse_network(folder)?;
    private::refuse_links(folder)?;
    private::tighten(folder)?;
    let gate = lock::file(folder, "gate.lock")?;
    let deadline = Instant::now() + PATIENCE;
    while !try_lock(folder, &gate)? {
        if Instant::now() > deadline {
            let what = "another process has been opening it for 30 s; end that process, or look at what it waits for";
            return Err(FileError::new(folder, what));
        }
        sleep(Duration::from_millis(1));
    }
    let owner = lock::file(folder, OWNER)?;
    let alone = try_lock(folder, &owner)?;
    let (env, rows, settings) = if alone { first(folder, wanted)? } else { join(folder, wanted)? };
    if alone {
        owner.unlock().map_err(|error| FileError::io(folder, "its lock cannot be shared", &error))?;
    }
    // No process can lock it exclusively while this one holds the gate.
    owner.lock_shared().map_err(|error| FileError::io(folder, "its lock cannot be shared", &error))?;
    Ok(Opened { env, rows, settings, owner: Arc::new(owner) })
}

/// Size of the data file in bytes, rounded up to a page of any system.
fn size(folder: &Path) -> Result<u64, FileError> {
    let found = fs::metadata(snapshot::data(folder));
    let found = found.map_err(|error| FileError::io(folder, "data.mdb cannot be read", &error))?;
    Ok(found.len().next_multiple_of(1 << 16))
}

/// Maps the whole file. A process that mapped less could not read what another one writes behind that.
fn environment(folder: &Path, sync: SyncMode) -> Result<Env<WithoutTls>, FileError> {
    let bytes = size(folder)?;
    let mut flags = EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD;
    if sync != SyncMode::Always {
        flags |= EnvFlags::NO_SYNC;
    }
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(bytes as usize);
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Safety: this process opens a folder once (see the registry), its file was checked before it is mapped, and
        // all its blocks are on the disk before it is written to.
        match unsafe { options.flags(flags).open(folder) } {
            // Another thread is closing the last store on it.
            Err(heed::Error::EnvAlreadyOpened) if Instant::now() < deadline => sleep(Duration::from_millis(2)),
            other => return other.map_err(|error| FileError::engine(folder, "it cannot be opened", &error)),
        }
    }
}

type Parts = (Env<WithoutTls>, Rows, Settings);

fn first(folder: &Path, wanted: Options) -> Result<Parts, FileError> {
    disk::reserve(&folder.join("lock.mdb"), LOCK_BYTES)?;
    snapshot::restore(folder)?;
    let path = snapshot::data(folder);
    if !path.exists() {
        create(folder)?;
    }
    let found = check(folder, &path)?;
    let settings = Settings {
        max_keys: wanted.max_keys.unwrap_or(found.max_keys),
        sync: wanted.sync.unwrap_or(found.sync),
        ..found
    };
    // The file of a larger `max_keys` keeps its size: its states may take all of it.
    let bytes = map_size(settings.max_keys).max(size(folder)?);
    disk::refuse_size(folder, bytes)?;
    disk::reserve(&path, bytes)?;
    let env = environment(folder, settings.sync)?;
    if settings.sync == SyncMode::Always {
        // This commit syncs what earlier processes left to snapshots; only then may the note say that all of it is synced.
        let rows = write_settings(folder, &env, settings)?;
        snapshot::note(folder, settings.sync)?;
        return Ok((env, rows, settings));
    }
    if snapshot::noted_sync(folder) == SyncMode::Always {
        // Once the note has changed, a power cut brings back the last snapshot. It must not be older than what was synced.
        snapshot::make(folder, &env, 0)?;
    }
    snapshot::note(folder, settings.sync)?;
    let rows = write_settings(folder, &env, settings)?;
    Ok((env, rows, settings))
}

/// Creates a data file without states, and renames it into place: a data file that exists is complete, even if a
/// process is killed meanwhile.
fn create(folder: &Path) -> Result<(), FileError> {
    let fail = |error| FileError::io(folder, "data.mdb cannot be made", &error);
    let secret = [RandomState::new().hash_one(0), RandomState::new().hash_one(1)];
    let aside = folder.join("new");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(fail)?;
    }
    private::make_folder(&aside).map_err(fail)?;
    disk::reserve(&aside.join("lock.mdb"), LOCK_BYTES)?;
    // The data is not mapped for writing, since no blocks are reserved yet. Synced before the rename.
    // Safety: the folder is new.
    let env = unsafe { EnvOpenOptions::new().read_txn_without_tls().map_size(1 << 20).open(&aside) };
    let env = env.map_err(|error| FileError::engine(folder, "data.mdb cannot be made", &error))?;
    let written = write_settings(folder, &env, Settings { secret, max_keys: DEFAULT_MAX_KEYS, sync: DEFAULT_SYNC });
    env.prepare_for_closing().wait();
    written?;
    fs::rename(snapshot::data(&aside), snapshot::data(folder)).and_then(|()| fs::remove_dir_all(&aside)).map_err(fail)
}

fn write_settings(folder: &Path, env: &Env<WithoutTls>, settings: Settings) -> Result<Rows, FileError> {
    let fail = |error: heed::Error| FileError::engine(folder, "its settings cannot be written", &error);
    let mut txn = env.write_txn().map_err(fail)?;
    let rows: Rows = env.create_database(&mut txn, None).map_err(fail)?;
    rows.put(&mut txn, options::KEY, &settings.to_row()).map_err(fail)?;
    if rows.get(&txn, FRESH_FROM).map_err(fail)?.is_none() {
        rows.put(&mut txn, FRESH_FROM, &row::sealed(FRESH_FROM, &0_f64.to_le_bytes())).map_err(fail)?;
    }
    txn.commit().map_err(fail)?;
    Ok(rows)
}

/// Verifies the data file and returns its settings.
fn check(folder: &Path, path: &Path) -> Result<Settings, FileError> {
    let fail = |error| FileError::io(folder, "data.mdb cannot be read", &error);
    let corrupt = |what: String| FileError::corrupt(folder, &what);
    let mut file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut bytes).map_err(fail)?;
    let rest = used(&bytes).map_err(corrupt)?.saturating_sub(bytes.len() as u64);
    file.take(rest).read_to_end(&mut bytes).map_err(fail)?;
    verify(&bytes).map_err(corrupt)?;
    // Safety: as above; it has just been checked. It is closed before the environment of the store is opened.
    let env = unsafe { EnvOpenOptions::new().read_txn_without_tls().map_size(size(folder)? as usize).open(folder) };
    let env = env.map_err(|error| FileError::engine(folder, "it cannot be opened", &error))?;
    let settings = settings(folder, &env).map(|(_, settings)| settings);
    env.prepare_for_closing().wait();
    settings
}

fn settings(folder: &Path, env: &Env<WithoutTls>) -> Result<(Rows, Settings), FileError> {
    let fail = |error: heed::Error| FileError::engine(folder, "its settings cannot be read", &error);
    let txn = env.read_txn().map_err(fail)?;
    let rows: Option<Rows> = env.open_database(&txn, None).map_err(fail)?;
    let missing = || FileError::corrupt(folder, "it has no settings of this version");
    let rows = rows.ok_or_else(missing)?;
    let bytes = rows.get(&txn, options::KEY).map_err(fail)?.ok_or_else(missing)?;
    let settings = Settings::from_row(bytes).ok_or_else(missing)?;
    txn.commit().map_err(fail)?;
    Ok((rows, settings))
}

fn join(folder: &Path, wanted: Options) -> Result<Parts, FileError> {
    let env = environment(folder, snapshot::noted_sync(folder))?;
    let (rows, settings) = settings(folder, &env)?;
    agree(folder, wanted, settings)?;
    Ok((env, rows, settings))
}

/// Rejects settings that differ from those that the folder is open with.
fn agree(folder: &Path, wanted: Options, settings: Settings) -> Result<(), FileError> {
    let differs = |name: &str, has: String, wanted: String| {
        let what = format!(
            "it is open with `{name}` {has}, and {wanted} was requested; open it everywhere with the same settings"
        );
        Err(FileError::new(folder, what))
    };
    match wanted {
        Options { max_keys: Some(wanted), .. } if wanted != settings.max_keys => {
            differs("maxKeys", settings.max_keys.to_string(), wanted.to_string())
        }
        Options { sync: Some(wanted), .. } if wanted != settings.sync => {
            differs("sync", settings.sync.to_string(), wanted.to_string())
        }
        _ => Ok(()),
    }
}
