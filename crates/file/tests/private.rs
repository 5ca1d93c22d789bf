//! The files of a folder hold the secret of the key hashes: only the user that created them may read them.
#![cfg(unix)]

mod temporary;

#[cfg(target_os = "linux")]
use std::ffi::c_int;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use temporary::{Temporary, bucket, every, granted};
use tidegate_file::Options;

/// The permissions of other users that files were created with, and lost only later: until then anyone could open them.
#[cfg(target_os = "linux")]
static OPENED_TO_OTHERS: AtomicU32 = AtomicU32::new(0);

/// Stands before that of the C library, so that it sees the mode with which a file was created.
///
/// # Safety
/// As that of the C library.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn fchmod(fd: c_int, mode: libc::mode_t) -> c_int {
    let created = fs::metadata(format!("/proc/self/fd/{fd}")).expect("an open file").permissions().mode();
    OPENED_TO_OTHERS.fetch_or(created & 0o077, Relaxed);
    // Safety: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_fchmod, fd, mode) as c_int }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
}

/// Every file, with its mode.
fn files(folder: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), mode(&entry.path()))).collect();
    files.sort();
    files
}

fn used(folder: &Temporary) {
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(1000)) }).expect("a store");
    assert!(granted(&store, &bucket(&store, 3.0), "ann", 1) <= 1);
}

/// One test, since a process has one umask.
#[test]
fn every_file_has_mode_600_under_any_umask_and_wider_modes_are_narrowed() {
    for umask in [0o000, 0o002, 0o022, 0o077, 0o277] {
        let folder = Temporary::new();
        // Safety: it sets one number of this process, whose only test this is.
        let before = unsafe { libc::umask(umask) };
        used(&folder);
        // Safety: as above.
        unsafe { libc::umask(before) };
        assert_eq!(mode(&folder.0), 0o700, "umask {umask:o}");
        #[cfg(target_os = "linux")]
        assert_eq!(OPENED_TO_OTHERS.load(Relaxed), 0, "umask {umask:o}");
        let made = files(&folder.0);
        for name in ["data.mdb", "lock.mdb", "snapshot.mdb", "run", "gate.lock", "owner.lock", "snapshot.lock"] {
            assert!(made.iter().any(|(file, _)| file == name), "{name} is not among {made:?}");
        }
        for (name, mode) in &made {
            assert_eq!(*mode, 0o600, "{name}, umask {umask:o}");
        }

        // As an older version, or a restored backup, leaves them: readable by others.
        for (name, _) in &made {
            fs::set_permissions(folder.0.join(name), Permissions::from_mode(0o664)).expect("our own file");
        }
        used(&folder);
        for (name, mode) in files(&folder.0) {
            assert_eq!(mode, 0o600, "{name}, tightened");
        }

        // As some other program leaves them: without a right that this one needs.
        for (name, _) in &made {
            fs::set_permissions(folder.0.join(name), Permissions::from_mode(0o400)).expect("our own file");
        }
        used(&folder);
        for (name, mode) in files(&folder.0) {
            assert_eq!(mode, 0o600, "{name}, made writable");
        }

        // The snapshot replaces a missing data file.
        fs::set_permissions(folder.0.join("snapshot.mdb"), Permissions::from_mode(0o644)).expect("our own file");
        fs::remove_file(folder.0.join("data.mdb")).expect("our own file");
        used(&folder);
        for (name, mode) in files(&folder.0) {
            assert_eq!(mode, 0o600, "{name}, restored");
        }
    }

    // Missing parents are as private as the folder.
    let parent = Temporary::new();
    let folder = Temporary(parent.0.join("states"));
    // Safety: as above.
    let before = unsafe { libc::umask(0) };
    used(&folder);
    // Safety: as above.
    unsafe { libc::umask(before) };
    assert_eq!([mode(&parent.0), mode(&folder.0)], [0o700; 2]);

    // An existing folder keeps its mode, since it may hold other files.
    let folder = Temporary::new();
    fs::create_dir(&folder.0).expect("a folder");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o755)).expect("our own folder");
    used(&folder);
    assert_eq!(mode(&folder.0), 0o755);
}
