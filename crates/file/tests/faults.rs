//! A folder that is damaged, cut off, or not what it should be.

mod temporary;

use std::fs;
use std::time::{Duration, Instant};
use temporary::{NOW, Temporary, bucket, granted};
use tidegate_file::{Options, Sync};
use tidegate_table::Call;

fn write(folder: &Temporary, keys: usize) {
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    for i in 0..keys {
        assert_eq!(granted(&store, &limit, &format!("key {i}"), 1), 1);
    }
    store.reset(&limit, Some(b"key 0")).expect("a reset");
}

#[test]
fn a_damaged_file_is_told_of_and_never_followed() {
    let folder = Temporary::new();
    write(&folder, 400);
    let path = folder.0.join("data.mdb");
    let whole = fs::read(&path).expect("a file");
    let used = 40 * 4096;
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut told = 0;
    for round in 0..20 {
        let mut damaged = whole.clone();
        for _ in 0..1 + round % 8 {
            let at = random(used);
            damaged[at] ^= 1 << random(8);
            if round % 3 == 0 {
                let page = at & !4095;
                damaged[page..page + 4096].fill(random(256) as u8);
            }
        }
        fs::write(&path, &damaged).expect("a file");
        match folder.open_with(Options::default()) {
            Err(error) => {
                told += 1;
                assert!(error.contains("data.mdb is corrupt: ") && error.contains("remove data.mdb"), "{error}");
                assert!(
                    error.contains(folder.0.file_name().and_then(|name| name.to_str()).expect("a name")),
                    "{error}"
                );
            }
            // What was damaged was free, or says nothing: then all is there.
            Ok(store) => {
                let limit = bucket(&store, 3.0);
                assert_eq!(granted(&store, &limit, "key 399", 3), 2, "round {round}");
                assert_eq!(granted(&store, &limit, &format!("new {round}"), 4), 3);
            }
        }
    }
    assert!(told > 7, "{told} of 20 were told");
}

#[test]
fn a_file_that_was_cut_or_is_another_is_told_of() {
    let folder = Temporary::new();
    write(&folder, 400);
    let path = folder.0.join("data.mdb");
    let whole = fs::read(&path).expect("a file");
    for wrong in [&whole[..20_000], &whole[..4096], &[], b"SQLite format 3\0", &[0xff; 9000]] {
        fs::write(&path, wrong).expect("a file");
        let told = folder.open_with(Options::default()).expect_err("damaged");
        assert!(told.contains("data.mdb is corrupt"), "{} bytes: {told}", wrong.len());
    }
    fs::remove_file(&path).expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 399", 4), 2, "the snapshot took its place");
}

#[test]
fn after_a_power_cut_the_last_snapshot_is_what_there_is() {
    let folder = Temporary::new();
    let every = |ms| Options { max_keys: None, sync: Some(Sync::Every(ms)) };
    write(&folder, 50);
    // What comes later is in no snapshot.
    let snapshot = fs::read(folder.0.join("snapshot.mdb")).expect("a snapshot");
    let store = folder.open_with(every(1000)).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 2), 2);
    drop(store);
    // The same system: what a process wrote is there, whatever came of the process.
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 1), 0);
    drop(store);
    // Another run of the system, and pages that never were at the same time.
    fs::write(folder.0.join("snapshot.mdb"), &snapshot).expect("a file");
    fs::write(folder.0.join("run"), "another run\nevery 1000 ms\n").expect("a file");
    let mut data = fs::read(folder.0.join("data.mdb")).expect("a file");
    data[8192..].fill(0x5a);
    fs::write(folder.0.join("data.mdb"), &data).expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 3), 2);
    drop(store);
    // Without a snapshot there is nothing that is older than the interval.
    fs::remove_file(folder.0.join("snapshot.mdb")).expect("a file");
    fs::write(folder.0.join("run"), "another run\nevery 1000 ms\n").expect("a file");
    let store = folder.open();
    assert_eq!(store.stats().expect("stats").keys, 0);
}

#[test]
fn a_snapshot_follows_what_was_written() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(Sync::Every(20)) }).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 2);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !folder.0.join("snapshot.mdb").exists() {
        assert!(Instant::now() < deadline, "no snapshot: {:?}", store.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(store.stats().expect("stats").sync_error, None);
}

#[test]
fn what_is_synced_always_needs_no_snapshot() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(Sync::Always) }).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 2);
    drop(store);
    fs::write(folder.0.join("run"), "another run\nalways\n").expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 1);
    assert!(!folder.0.join("snapshot.mdb").exists());
}

#[test]
fn what_is_no_folder_is_told_of() {
    let folder = Temporary::new();
    fs::write(&folder.0, "a file").expect("a file");
    let told = folder.open_with(Options::default()).expect_err("a file");
    assert!(told.contains("the folder cannot be used") && told.contains("use the path of a folder"), "{told}");
    fs::remove_file(&folder.0).expect("a file");
}

#[cfg(unix)]
#[test]
fn a_forked_child_is_refused_and_its_parent_goes_on() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "ann", 1), 1);
    // Safety: the child calls only what is told here, and ends without anything of the parent's.
    let status = unsafe {
        match libc::fork() {
            0 => {
                let refused = store.decide(&limit, Some(b"ann"), Call::at(NOW)).is_err();
                libc::_exit(if refused { 7 } else { 1 })
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                libc::WEXITSTATUS(status)
            }
        }
    };
    assert_eq!(status, 7);
    assert_eq!(granted(&store, &limit, "ann", 3), 2);
}
