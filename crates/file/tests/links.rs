//! A user who can write into a folder must not choose which other files its process writes.
#![cfg(unix)]

mod temporary;

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use temporary::{Temporary, bucket, every, granted};
use tidegate_file::Options;

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

const OPTIONS: Options = Options { max_keys: None, sync: None };

#[test]
fn a_link_in_the_folder_is_refused_and_its_target_is_left_alone() {
    let aside = Temporary::new();
    fs::create_dir(&aside.0).expect("a folder");
    let target = aside.0.join("target");
    for name in FILES {
        let folder = Temporary::new();
        fs::create_dir(&folder.0).expect("a folder");
        fs::write(&target, "a file of someone else").expect("a file");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).expect("our own file");
        symlink(&target, folder.0.join(name)).expect("a link");
        let error = folder.open_with(OPTIONS).err().unwrap_or_default();
        assert!(error.contains(&format!("{name} is a link")), "{name}: {error}");
        assert_eq!(fs::read_to_string(&target).expect("the target"), "a file of someone else", "{name}");
        assert_eq!(fs::metadata(&target).expect("the target").permissions().mode() & 0o777, 0o644, "{name}");
    }
}

#[test]
fn a_link_that_appears_while_the_folder_is_open_is_not_followed() {
    for (name, is_made) in [("snapshot.tmp", true), ("snapshot.lock", false)] {
        let folder = Temporary::new();
        let aside = Temporary::new();
        fs::create_dir(&aside.0).expect("a folder");
        let target = aside.0.join("target");
        fs::write(&target, "a file of someone else").expect("a file");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).expect("our own file");
        let store = folder.open_with(Options { sync: Some(every(3_600_000)), ..OPTIONS }).expect("a store");
        symlink(&target, folder.0.join(name)).expect("a link");
        assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 1), 1);
        // It makes the last snapshot.
        drop(store);
        assert_eq!(fs::read_to_string(&target).expect("the target"), "a file of someone else", "{name}");
        assert_eq!(fs::metadata(&target).expect("the target").permissions().mode() & 0o777, 0o644, "{name}");
        assert_eq!(folder.0.join("snapshot.mdb").is_file(), is_made, "{name}");
    }
}

#[test]
fn a_pipe_in_the_folder_is_refused_and_not_waited_for() {
    let folder = Temporary::new();
    fs::create_dir(&folder.0).expect("a folder");
    let path = CString::new(folder.0.join("run").as_os_str().as_bytes()).expect("a path");
    // Safety: the path ends with zero.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let error = folder.open_with(OPTIONS).expect_err("no store");
    assert!(error.contains("run is no file"), "{error}");
}
