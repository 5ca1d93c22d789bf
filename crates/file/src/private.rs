//! Files that only the user of this process may read: they hold the secret of the key hashes, and the states.

use crate::error::FileError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Every file of a folder.
const FILES: [&str; 10] = [
    "data.mdb",
    "data.tmp",
    "lock.mdb",
    "snapshot.mdb",
    "snapshot.tmp",
    "snapshot.lock",
    "run",
    "run.tmp",
    "gate.lock",
    "owner.lock",
];

/// Opens a file for reading and writing, creating it if it is missing, with mode 600 under any umask. Follows no link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().create(true).truncate(false))
}

/// Creates a file in place of any other, as [`open`] does. What a link names is left alone.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => opened(path, OpenOptions::new().create_new(true)),
    }
}

fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o777 != 0o600 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// Creates the folder and missing parents with mode 700 under any umask. An existing folder keeps its mode.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Rejects links: a user who can write into the folder would choose which other file of this user is overwritten. And pipes and the
/// like, which would be waited for. A folder in place of a file fails by itself.
pub(crate) fn refuse_links(folder: &Path) -> Result<(), FileError> {
    for name in FILES {
        let Ok(found) = fs::symlink_metadata(folder.join(name)) else { continue };
        if found.is_file() || found.is_dir() {
            continue;
        }
        let is = if found.is_symlink() { "a link" } else { "no file" };
        let what =
            format!("{name} is {is}; use a folder that holds nothing else, and in which only this user may write");
        return Err(FileError::new(folder, what));
    }
    Ok(())
}

/// Sets the mode of existing files to 600: those of an older version or a restored backup may be open to other users.
#[cfg(unix)]
pub(crate) fn tighten(folder: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt;
    for name in FILES {
        let path = folder.join(name);
        let Ok(found) = fs::metadata(&path) else { continue };
        let mode = found.permissions().mode() & 0o777;
        if mode == 0o600 {
            continue;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(|error| {
            let what = format!(
                "{name} has mode {mode:o}, so other users can read the secret of its keys, and it cannot be set to 600: \
                 {error}; run this process as the file's owner, or set the mode yourself"
            );
            FileError::new(folder, what)
        })?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn tighten(_: &Path) -> Result<(), FileError> {
    Ok(())
}
