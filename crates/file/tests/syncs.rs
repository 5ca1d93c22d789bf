//! What is synced to the disk, and when. This program's `msync`, `fsync` and `fdatasync` stand before those of the C
//! library, so calls of LMDB and of the standard library are counted, and then made.
#![cfg(target_os = "linux")]

mod temporary;

use std::ffi::{c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use temporary::{Temporary, bucket, every, granted};
use tidegate_file::{Options, SyncMode, open};

/// The names of the files synced so far, and `map` for a mapped one. A renamed file has the name at its sync.
static SYNCED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn record(name: String) {
    SYNCED.lock().expect("no panic inside").push(name);
}

fn name_of(fd: c_int) -> String {
    let path = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// # Safety
/// As that of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn msync(from: *mut c_void, length: usize, flags: c_int) -> c_int {
    if flags & libc::MS_SYNC != 0 {
        record("map".to_owned());
    }
    // Safety: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_msync, from, length, flags) as c_int }
}

/// # Safety
/// As that of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    record(name_of(fd));
    // Safety: the caller's argument.
    unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int }
}

/// # Safety
/// As that of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    record(name_of(fd));
    // Safety: the caller's argument.
    unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int }
}

fn synced(run: impl FnOnce()) -> Vec<String> {
    SYNCED.lock().expect("no panic inside").clear();
    run();
    SYNCED.lock().expect("no panic inside").clone()
}

fn named(synced: &[String], name: &str) -> usize {
    synced.iter().filter(|synced| synced.as_str() == name).count()
}

/// The name under which a sync of the folder itself is recorded.
fn in_folder(folder: &Temporary) -> &str {
    folder.0.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// Of another process, which joins the folder.
fn joins(folder: &Path) {
    let open = |sync| open(folder, Options { max_keys: None, sync });
    let error = open(Some(every(1000))).expect_err("other settings").to_string();
    assert!(error.contains("it is open with `sync` always, and every 1000 ms was requested"), "{error}");
    let store = open(None).expect("a store");
    let synced = synced(|| assert_eq!(granted(&store, &bucket(&store, 3.0), "of another process", 1), 1));
    assert!(named(&synced, "map") + named(&synced, "data.mdb") > 0, "{synced:?}");
}

/// One test, since the record is that of the process.
#[test]
fn each_commit_or_a_snapshot_of_it_is_synced() {
    if let Some(folder) = std::env::var_os("TIDEGATE_JOINED") {
        return joins(Path::new(&folder));
    }
    let folder = Temporary::new();
    let always = || folder.open_with(Options { max_keys: None, sync: Some(SyncMode::Always) }).expect("a store");
    let hourly = || folder.open_with(Options { max_keys: None, sync: Some(every(3_600_000)) }).expect("a store");

    // A new data file is synced before it has its name, and then nothing until its first snapshot.
    let made = synced(|| drop(hourly()));
    assert_eq!(made[..3], ["data.mdb", "run.tmp", in_folder(&folder)], "{made:?}");
    fs::remove_dir_all(&folder.0).expect("our own folder");

    // What earlier processes left to snapshots is synced before a note says that all of it is.
    drop(hourly());
    let mut store = None;
    let opened = synced(|| store = Some(always()));
    let at = |names: [&str; 2]| opened.iter().position(|synced| names.contains(&synced.as_str()));
    assert!(at(["map", "data.mdb"]).is_some() && at(["map", "data.mdb"]) < at(["run.tmp"; 2]), "{opened:?}");
    let store = store.expect("a store");
    let limit = bucket(&store, 3.0);
    for _ in 0..3 {
        let synced = synced(|| assert_eq!(granted(&store, &limit, "ann", 1), 1));
        // The mapped pages, or the file if the system maps it otherwise.
        assert!(named(&synced, "map") + named(&synced, "data.mdb") > 0, "{synced:?}");
    }
    let denied = synced(|| assert_eq!(granted(&store, &limit, "ann", 1), 0));
    assert_eq!(denied, [""; 0], "a denial writes nothing");
    let mut other = Command::new(std::env::current_exe().expect("this program"));
    other.args(["--exact", "each_commit_or_a_snapshot_of_it_is_synced", "--nocapture"]);
    assert!(other.env("TIDEGATE_JOINED", &folder.0).status().expect("a process").success());
    assert_eq!(granted(&store, &limit, "of another process", 3), 2);
    drop(store);

    // The second time there is a snapshot, which is not an hour old.
    for _ in 0..2 {
        let store = hourly();
        let limit = bucket(&store, 4.0);
        let written = synced(|| assert_eq!(granted(&store, &limit, "bob", 2), 2));
        assert_eq!(written, [""; 0], "the snapshot syncs");
        let closed = synced(|| drop(store));
        // The file, then the folder with its new name.
        assert_eq!(closed, ["snapshot.tmp", in_folder(&folder)]);
    }

    // What replaces a missing data file is synced before it has its name.
    fs::remove_file(folder.0.join("data.mdb")).expect("a file");
    let mut store = None;
    let restored = synced(|| store = Some(hourly()));
    // The note of the system's run is right, and so is only synced.
    assert_eq!(restored[..3], ["data.tmp", in_folder(&folder), in_folder(&folder)], "{restored:?}");
    let store = store.expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 4.0), "bob", 1), 0);
}
