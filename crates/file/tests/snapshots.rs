//! Snapshots: when one is made, and when one takes the place of the data file.

mod temporary;

use std::fs;
use std::time::{Duration, Instant};
use temporary::{Temporary, bucket, every, granted, write};
use tidegate_file::{Options, SyncMode};

#[test]
fn after_a_power_cut_the_last_snapshot_is_restored() {
    let folder = Temporary::new();
    write(&folder, 50);
    // Later writes are in no snapshot.
    let snapshot = fs::read(folder.0.join("snapshot.mdb")).expect("a snapshot");
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(1000)) }).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 2), 2);
    drop(store);
    // In the same run of the system, the writes of a killed process are kept.
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 1), 0);
    drop(store);
    // Another run of the system, with pages of different moments.
    fs::write(folder.0.join("snapshot.mdb"), &snapshot).expect("a file");
    fs::write(folder.0.join("run"), "another run\nevery 1000 ms\n").expect("a file");
    let mut data = fs::read(folder.0.join("data.mdb")).expect("a file");
    data[8192..].fill(0x5a);
    fs::write(folder.0.join("data.mdb"), &data).expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 7", 3), 2);
    drop(store);
    // Without a snapshot, every state is younger than the interval and may be lost.
    fs::remove_file(folder.0.join("snapshot.mdb")).expect("a file");
    fs::write(folder.0.join("run"), "another run\nevery 1000 ms\n").expect("a file");
    let store = folder.open();
    assert_eq!(store.stats().expect("stats").keys, 0);
}

#[test]
fn a_write_is_followed_by_a_snapshot_and_no_other_snapshot_is_made() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(20)) }).expect("a store");
    let snapshot = folder.0.join("snapshot.mdb");
    let deadline = Instant::now() + Duration::from_secs(60);
    let made = || {
        while !snapshot.exists() {
            assert!(Instant::now() < deadline, "no snapshot: {:?}", store.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // Of the settings, which opening writes.
    made();
    fs::remove_file(&snapshot).expect("a file");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 2);
    made();
    assert_eq!(store.stats().expect("stats").sync_error, None);
    fs::remove_file(&snapshot).expect("a file");
    drop(store);
    assert!(!snapshot.exists());
}

#[test]
fn a_data_file_without_a_note_of_its_run_is_kept_and_a_missing_one_is_made() {
    let folder = Temporary::new();
    write(&folder, 5);
    // A backup of the data file alone.
    for name in ["run", "snapshot.mdb"] {
        fs::remove_file(folder.0.join(name)).expect("a file");
    }
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 4", 3), 2);
    drop(store);
    // Removed before the first snapshot.
    for name in ["data.mdb", "snapshot.mdb"] {
        fs::remove_file(folder.0.join(name)).expect("a file");
    }
    assert_eq!(folder.open().stats().expect("stats").keys, 0);
}

#[test]
fn a_snapshot_that_fails_is_reported_until_one_is_made() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(3)) }).expect("a store");
    let limit = bucket(&store, 1e9);
    let blocked = folder.0.join("snapshot.tmp");
    let deadline = Instant::now() + Duration::from_secs(60);
    let until = |fails: bool| loop {
        let error = store.stats().expect("stats").sync_error;
        if error.is_some() == fails {
            return error;
        }
        assert!(Instant::now() < deadline, "{error:?}");
        // Once one has failed, the next is made without a write.
        if fails {
            granted(&store, &limit, "ann", 1);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // The snapshot before may have this name until it is renamed.
    while fs::create_dir(&blocked).is_err() {
        assert!(Instant::now() < deadline);
    }
    let error = until(true).expect("an error");
    assert!(error.contains("a snapshot cannot be written"), "{error}");
    fs::remove_dir(&blocked).expect("our own folder");
    assert_eq!(until(false), None);
}

#[test]
fn a_snapshot_that_fails_leaves_no_copy_which_would_keep_the_last_room_of_a_disk() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(3_600_000)) }).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 1), 1);
    // What no file can replace.
    fs::create_dir(folder.0.join("snapshot.mdb")).expect("a folder");
    drop(store);
    assert!(!folder.0.join("snapshot.tmp").exists());
    // Nor does opening, where the copy of the last snapshot cannot replace the data file.
    fs::remove_dir(folder.0.join("snapshot.mdb")).expect("our own folder");
    drop(folder.open());
    fs::write(folder.0.join("run"), "another run\nevery 1000 ms\n").expect("a file");
    fs::remove_file(folder.0.join("data.mdb")).expect("a file");
    fs::create_dir(folder.0.join("data.mdb")).expect("a folder");
    let error = tidegate_file::open(&folder.0, Options::default()).expect_err("no store").to_string();
    assert!(error.contains("the last snapshot cannot be put in its place"), "{error}");
    assert!(!folder.0.join("data.tmp").exists());
}

#[cfg(unix)]
#[test]
fn a_write_that_the_snapshot_of_another_process_may_lack_is_in_the_next_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Temporary::new();
    let turn = folder.0.join("snapshot.lock");
    fs::create_dir(&folder.0).expect("a folder");
    let held = fs::File::create(&turn).expect("a file");
    held.lock().expect("a lock");
    let _store = folder.open_with(Options { max_keys: None, sync: Some(every(3)) }).expect("a store");
    let deadline = Instant::now() + Duration::from_secs(60);
    let until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < deadline, "no further try");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mode = || fs::metadata(&turn).expect("a file").permissions().mode() & 0o777;
    // A try narrows its mode. Once a second one has begun, the first is over.
    for _ in 0..2 {
        fs::set_permissions(&turn, fs::Permissions::from_mode(0o644)).expect("our own file");
        until(&|| mode() == 0o600);
    }
    assert!(!folder.0.join("snapshot.mdb").exists());
    held.unlock().expect("a lock");
    until(&|| folder.0.join("snapshot.mdb").exists());
}

#[test]
fn the_last_snapshot_waits_until_another_process_has_made_its_own() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(every(3_600_000)) }).expect("a store");
    let turn = fs::File::create(folder.0.join("snapshot.lock")).expect("a file");
    turn.lock().expect("a lock");
    let snapshot = folder.0.join("snapshot.mdb");
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| drop(store));
        // Without patience, it ends in this time. With it, the time does not matter.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!closing.is_finished() && !snapshot.exists());
        turn.unlock().expect("a lock");
    });
    assert!(snapshot.exists());
}

#[test]
fn a_folder_that_is_always_synced_loses_nothing_and_has_no_snapshot() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: None, sync: Some(SyncMode::Always) }).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 2);
    drop(store);
    fs::write(folder.0.join("run"), "another run\nalways\n").expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 1);
    assert!(!folder.0.join("snapshot.mdb").exists());
}

#[test]
fn a_power_cut_just_after_syncs_give_way_to_snapshots_loses_nothing_that_was_synced() {
    let folder = Temporary::new();
    let always = Options { max_keys: None, sync: Some(SyncMode::Always) };
    let hourly = Options { max_keys: None, sync: Some(every(3_600_000)) };
    drop(folder.open_with(hourly).expect("a store"));
    let store = folder.open_with(always).expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 2);
    drop(store);
    let _store = folder.open_with(hourly).expect("a store");
    // What the disk has after the power cut.
    let cut = Temporary::new();
    fs::create_dir(&cut.0).expect("a folder");
    fs::copy(folder.0.join("snapshot.mdb"), cut.0.join("snapshot.mdb")).expect("a snapshot");
    fs::write(cut.0.join("data.mdb"), [0x5a; 20_000]).expect("a file");
    fs::write(cut.0.join("run"), "another run\nevery 3600000 ms\n").expect("a file");
    let store = cut.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 2), 1);
}

#[test]
fn a_folder_whose_note_is_right_opens_where_no_note_can_be_written_as_on_a_full_disk() {
    let folder = Temporary::new();
    let open = |ms| folder.open_with(Options { max_keys: None, sync: Some(every(ms)) });
    let store = open(1000).expect("a store");
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "ann", 2), 2);
    drop(store);
    let in_its_way = folder.0.join("run.tmp");
    fs::create_dir(&in_its_way).expect("a folder");
    let error = open(2000).expect_err("another note");
    assert!(error.contains("its note of the system's run cannot be written"), "{error}");
    let store = open(1000).expect("a store");
    assert_eq!(granted(&store, &limit, "ann", 2), 1);
    drop(store);
    fs::remove_dir(in_its_way).expect("our own folder");
}
