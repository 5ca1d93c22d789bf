//! A process opens a folder once: LMDB's locks are the process's, and closing a second one would drop the first one's.

use crate::error::FileError;
use crate::fork;
use crate::open::{agree, open as open_folder};
use crate::options::Options;
use crate::private;
use crate::store::FileStore;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<FileStore>>>> = LazyLock::new(Mutex::default);

/// Opens the folder at `path` for this process, or joins those of its threads that have it open. It is made where it is
/// not there.
///
/// # Errors
/// Where it is no folder or may not be written to, is on a network, has no room, is corrupt, or is open with other
/// settings. The error says what to do.
pub fn open(path: &Path, options: Options) -> Result<Arc<FileStore>, FileError> {
    fork::watch();
    if fork::forked() {
        let what = "this process was forked from one that had a folder open; start it as a program of its own";
        return Err(FileError::new(path, what));
    }
    let fail = |error| FileError::io(path, "the folder cannot be used", &error);
    private::make_folder(path).map_err(fail)?;
    let folder = fs::canonicalize(path).map_err(fail)?;
    let mut registry = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = registry.get(&folder).and_then(Weak::upgrade) {
        agree(&folder, options, store.settings())?;
        return Ok(store);
    }
    registry.retain(|_, store| store.strong_count() > 0);
    let store = Arc::new(FileStore::new(&folder, open_folder(&folder, options)?));
    registry.insert(folder, Arc::downgrade(&store));
    Ok(store)
}
