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

    pub(crate) fn removed(path: &Path) -> FileError {
        let what = "it was removed or renamed while this process has it open, and shares nothing with others; close it, and open it again";
        FileError::new(path, what)
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

#[cfg(test)]
mod tests {
    use super::*;
    use heed::MdbError;
    use io::ErrorKind::{
        AlreadyExists, FileTooLarge, NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        TimedOut,
    };

    #[test]
    fn an_error_of_the_system_ends_with_its_remedy() {
        let remedies = [
            (PermissionDenied, "; give this process's user the right to read and write there"),
            (ReadOnlyFilesystem, "; use a folder on a file system that is mounted for writing"),
            (StorageFull, "; free space there, use another disk, or set a smaller `maxKeys`"),
            (QuotaExceeded, "; free space there, use another disk, or set a smaller `maxKeys`"),
            (FileTooLarge, "; raise the limit on the size of files (ulimit -f), or set a smaller `maxKeys`"),
            (AlreadyExists, "; use the path of a folder, or of none yet"),
            (NotADirectory, "; use the path of a folder, or of none yet"),
            (TimedOut, "; use the path of a folder on a local disk, in which this process can make and write files"),
        ];
        for (kind, remedy) in remedies {
            let error = || io::Error::from(kind);
            let expected = format!("/states: it cannot be opened: {}{remedy}", error());
            assert_eq!(FileError::io(Path::new("/states"), "it cannot be opened", &error()).to_string(), expected);
            let engine = FileError::engine(Path::new("/states"), "it cannot be opened", &heed::Error::Io(error()));
            assert_eq!(engine.to_string(), expected);
        }
    }

    #[test]
    fn the_error_of_a_damaged_file_has_the_remedy_and_other_errors_name_the_failed_operation() {
        let text =
            |error| FileError::engine(Path::new("/states"), "a call failed", &heed::Error::Mdb(error)).to_string();
        for error in [MdbError::Corrupted, MdbError::Invalid, MdbError::PageNotFound, MdbError::VersionMismatch] {
            let got = text(error);
            assert!(got.contains("data.mdb is corrupt: ") && got.contains("remove data.mdb"), "{got}");
        }
        let full = text(MdbError::MapFull);
        assert!(full.starts_with("/states: a call failed: ") && !full.contains("corrupt"), "{full}");
    }
}
