//! Checks and reserves disk space before a file is mapped: a write to a mapped page without a block ends the process.

use crate::error::FileError;
use crate::private;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Network file systems, by the type that `statfs` returns. They are rejected: two machines cannot share a memory map.
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

/// Name of the network file system that the folder is on; `None` for a local one, or if the system reports none.
#[cfg(target_os = "linux")]
fn network(folder: &Path) -> Option<&'static str> {
    network_name(rustix::fs::statfs(folder).ok()?.f_type as u32)
}

#[cfg(target_os = "macos")]
fn network(folder: &Path) -> Option<&'static str> {
    let flags = rustix::fs::statfs(folder).ok()?.f_flags;
    (flags & libc::MNT_LOCAL as u32 == 0).then_some("not local")
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

pub(crate) fn refuse_network(folder: &Path) -> Result<(), FileError> {
    let Some(kind) = network(folder) else { return Ok(()) };
    let what = format!(
        "its file system is on a network ({kind}), where processes do not see each other's memory; use a local disk, or \
         tidegate/redis or tidegate/postgres for several machines"
    );
    Err(FileError::new(folder, what))
}

/// Rejects a size in bytes above the limit of this process: the system would end it with a signal.
#[cfg(unix)]
pub(crate) fn refuse_size(folder: &Path, bytes: u64) -> Result<(), FileError> {
    use rustix::process::{Resource, getrlimit};
    let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < bytes) else { return Ok(()) };
    let error = io::Error::from(io::ErrorKind::FileTooLarge);
    Err(FileError::io(folder, &format!("a file of {bytes} bytes is needed, and this process may write {most}"), &error))
}

#[cfg(not(unix))]
pub(crate) fn refuse_size(_: &Path, _: u64) -> Result<(), FileError> {
    Ok(())
}

/// Extends the file to at least this many bytes, with all its blocks allocated.
pub(crate) fn reserve(path: &Path, bytes: u64) -> Result<(), FileError> {
    let what = format!("no room for {bytes} bytes of {}", path.file_name().unwrap_or_default().display());
    let fail = |error: io::Error| FileError::io(path.parent().unwrap_or(path), &what, &error);
    let mut file = private::open(path).map_err(fail)?;
    // If the file system cannot allocate in advance, writing zeros does.
    let extend = |file: &mut File| if allocate(file, bytes)? { Ok(()) } else { append_zeros(file, bytes) };
    extended(&mut file, extend).map_err(fail)
}

/// Restores the file's length if `extend` fails: on a full disk the file would keep the last room from other programs. ext4
/// allocates all blocks that there are before it reports that they are too few.
fn extended(file: &mut File, extend: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let before = file.metadata()?.len();
    let result = extend(file);
    if result.is_err() {
        let _ = file.set_len(before);
    }
    result
}

/// Extends the file to at least this many bytes.
fn append_zeros(file: &mut File, bytes: u64) -> io::Result<()> {
    let before = file.seek(SeekFrom::End(0))?;
    io::copy(&mut io::repeat(0).take(bytes.saturating_sub(before)), file)?;
    Ok(())
}

/// Whether the blocks were allocated; false if the file system does not support it.
///
/// Blocks that a file shares with another are copied: XFS has the copy of a file share them (a restored snapshot, `cp`), and a
/// write to one needs a new block.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    for flags in [FallocateFlags::UNSHARE_RANGE, FallocateFlags::empty()] {
        match retry_on_intr(|| fallocate(file, flags, 0, bytes)) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognized_by_their_type() {
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

    #[test]
    fn a_file_that_cannot_be_extended_keeps_its_length() {
        let path = std::env::temp_dir().join(format!("tidegate-file-extended-{}", std::process::id()));
        let mut file = private::make(&path).expect("a file");
        io::Write::write_all(&mut file, b"kept").expect("a text");
        let full = |file: &mut File| append_zeros(file, 200_000).and(Err(io::ErrorKind::StorageFull.into()));
        assert!(extended(&mut file, full).is_err());
        assert_eq!(std::fs::read(&path).expect("a file"), b"kept");
        std::fs::remove_file(path).expect("our own file");
    }

    #[test]
    fn zeros_follow_what_a_file_has() {
        let path = std::env::temp_dir().join(format!("tidegate-file-zeros-{}", std::process::id()));
        let mut file = private::make(&path).expect("a file");
        io::Write::write_all(&mut file, b"kept").expect("a text");
        for bytes in [200_000, 100] {
            append_zeros(&mut file, bytes).expect("room");
            let content = std::fs::read(&path).expect("a file");
            assert!(content.len() == 200_000 && content.starts_with(b"kept\0") && content.ends_with(&[0; 199_996]));
        }
        std::fs::remove_file(path).expect("our own file");
    }
}
