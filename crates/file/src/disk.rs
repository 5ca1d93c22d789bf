//! What the disk must give before anything is mapped: a write to a page that it cannot give would end the process.

use crate::error::FileError;
use crate::private;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// File systems of other machines, by the type that `statfs` tells: two machines cannot share a memory map.
#[cfg(target_os = "linux")]
const NETWORK: [(u32, &str); 11] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x7375_7245, "Coda"),
];

#[cfg(target_os = "linux")]
fn network_name(kind: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

#[cfg(unix)]
fn statfs(path: &Path) -> Option<libc::statfs> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // Safety: all zeros are a value of it, and the path ends in a zero.
    unsafe {
        let mut told: libc::statfs = std::mem::zeroed();
        (libc::statfs(path.as_ptr(), &mut told) == 0).then_some(told)
    }
}

/// What kind of network file system the folder is on, where that can be told.
#[cfg(target_os = "linux")]
fn network(folder: &Path) -> Option<&'static str> {
    network_name(statfs(folder)?.f_type as u32)
}

#[cfg(target_os = "macos")]
fn network(folder: &Path) -> Option<&'static str> {
    (statfs(folder)?.f_flags & libc::MNT_LOCAL as u32 == 0).then_some("not local")
}

#[cfg(windows)]
fn network(folder: &Path) -> Option<&'static str> {
    use std::path::{Component, Prefix};
    match folder.components().next() {
        Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)) => {
            Some("a network share")
        }
        _ => None,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn network(_: &Path) -> Option<&'static str> {
    None
}

/// Refuses a folder whose file system other machines share.
pub(crate) fn refuse_network(folder: &Path) -> Result<(), FileError> {
    let Some(kind) = network(folder) else { return Ok(()) };
    let what = format!(
        "its file system is on a network ({kind}), where processes do not see each other's memory; use a local disk, or \
         tidegate/redis or tidegate/postgres for several machines"
    );
    Err(FileError::new(folder, what))
}

/// Refuses a size that this process may not write: it would be ended by a signal.
#[cfg(unix)]
pub(crate) fn refuse_size(folder: &Path, bytes: u64) -> Result<(), FileError> {
    // Safety: it writes the two numbers that it is given.
    let most = unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 { limit.rlim_cur } else { libc::RLIM_INFINITY }
    };
    if most == libc::RLIM_INFINITY || most >= bytes {
        return Ok(());
    }
    let error = io::Error::from(io::ErrorKind::FileTooLarge);
    Err(FileError::io(folder, &format!("a file of {bytes} bytes is needed, and this process may write {most}"), &error))
}

#[cfg(not(unix))]
pub(crate) fn refuse_size(_: &Path, _: u64) -> Result<(), FileError> {
    Ok(())
}

/// Makes the file this long at least, with all its blocks on the disk.
pub(crate) fn reserve(path: &Path, bytes: u64) -> Result<(), FileError> {
    let what = format!("no room for {bytes} bytes of {}", path.file_name().unwrap_or_default().display());
    let fail = |error: io::Error| FileError::io(path.parent().unwrap_or(path), &what, &error);
    let mut file = private::open(path, false).map_err(fail)?;
    let before = file.metadata().map_err(fail)?.len();
    if allocate(&file, bytes).map_err(fail)? {
        return Ok(());
    }
    // Where the system allocates nothing ahead, it does for what is written.
    file.seek(SeekFrom::Start(before)).map_err(fail)?;
    let zeros = vec![0; 1 << 16];
    let mut left = bytes.saturating_sub(before);
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(zeros.get(..part as usize).unwrap_or_default()).map_err(fail)?;
        left -= part;
    }
    Ok(())
}

/// Whether the system could allocate the file's blocks.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    loop {
        // Safety: an open file.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(false),
            _ => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_their_type() {
        assert_eq!(network_name(libc::NFS_SUPER_MAGIC as u32), Some("NFS"));
        assert_eq!(network_name(libc::SMB_SUPER_MAGIC as u32), Some("SMB"));
        assert_eq!(network_name(0xff53_4d42), Some("CIFS"));
        assert_eq!(network_name(libc::EXT4_SUPER_MAGIC as u32), None);
        assert_eq!(network_name(libc::TMPFS_MAGIC as u32), None);
    }

    #[test]
    fn a_folder_of_the_system_is_local() {
        assert!(refuse_network(Path::new("/proc")).is_ok());
    }
}
