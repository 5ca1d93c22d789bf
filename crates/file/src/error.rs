//! The error of this crate: path, problem and remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that cannot be used. The text has the path, the problem and the remedy.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    what: String,
}

impl FileError {
    pub(crate) fn new(path: &Path, what: impl Into<String>) -> FileError {
        FileError { path: path.to_owned(), what: what.into() }
    }

    /// An error of the operating system on `path`, with the remedy.
    pub(crate) fn io(path: &Path, doing: &str, error: &io::Error) -> FileError {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => "; give this process's user the right to read and write there",
            io::ErrorKind::ReadOnlyFilesystem => "; use a folder on a file system that is mounted for writing",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free space there, use another disk, or set a smaller `maxKeys`"
            }
            io::ErrorKind::FileTooLarge => {
                "; raise the limit on the size of files (ulimit -f), or set a smaller `maxKeys`"
            }
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "; use the path of a folder, or of none yet",
            _ => "; use the path of a folder on a local disk, in which this process can make and write files",
        };
        FileError::new(path, format!("{doing}: {error}{remedy}"))
    }

    /// An error of LMDB.
    pub(crate) fn engine(path: &Path, doing: &str, error: &heed::Error) -> FileError {
        use heed::MdbError::{Corrupted, Invalid, PageNotFound, VersionMismatch};
        match error {
            heed::Error::Io(error) => FileError::io(path, doing, error),
            heed::Error::Mdb(Corrupted | Invalid | PageNotFound | VersionMismatch) => {
                FileError::corrupt(path, &error.to_string())
            }
            _ => FileError::new(path, format!("{doing}: {error}")),
        }
    }

    pub(crate) fn corrupt(path: &Path, what: &str) -> FileError {
        FileError::new(
            path,
            format!(
                "data.mdb is corrupt: {what}; stop all that use it and remove data.mdb, and the last snapshot takes its \
                 place, or remove the folder to begin with full limits"
            ),
        )
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for FileError {}
