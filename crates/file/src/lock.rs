//! The locks of a folder: files that processes lock.

use crate::error::FileError;
use crate::private;
use std::fs::{File, TryLockError};
use std::path::Path;

/// The lock that all processes share which have the folder open.
pub(crate) const OWNER: &str = "owner.lock";

/// Whether the folder was removed or renamed while it is open. What others make in its place is another folder.
#[cfg(unix)]
pub(crate) fn is_removed(folder: &Path, owner: &File) -> bool {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt;
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (fs::metadata(folder.join(OWNER)), owner.metadata()) {
        (Ok(there), Ok(held)) => identity(there) != identity(held),
        (Err(error), _) => error.kind() == ErrorKind::NotFound,
        (Ok(_), Err(_)) => false,
    }
}

/// Windows removes and renames no file that is open.
#[cfg(not(unix))]
pub(crate) fn is_removed(_: &Path, _: &File) -> bool {
    false
}

pub(crate) fn file(folder: &Path, name: &str) -> Result<File, FileError> {
    private::open(&folder.join(name))
        .map_err(|error| FileError::io(folder, &format!("{name} cannot be opened"), &error))
}

/// Locks the file exclusively. False if another process holds the lock.
pub(crate) fn try_lock(folder: &Path, file: &File) -> Result<bool, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(FileError::io(folder, "its lock cannot be taken", &error)),
    }
}
