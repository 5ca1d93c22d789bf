//! Folders that are damaged, truncated, foreign or in use.

mod temporary;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use temporary::{NOW, Temporary, bucket, granted, write};
use tidegate_file::{Options, open};
use tidegate_table::Call;

/// A folder with 400 keys, and its data file.
fn written() -> (Temporary, PathBuf, Vec<u8>) {
    let folder = Temporary::new();
    write(&folder, 400);
    let path = folder.0.join("data.mdb");
    let whole = fs::read(&path).expect("a file");
    (folder, path, whole)
}

#[test]
fn a_damaged_file_is_reported_as_corrupt_or_keeps_every_state() {
    let (folder, path, whole) = written();
    let used = 40 * 4096;
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut reported = 0;
    for round in 0..60 {
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
                reported += 1;
                assert!(error.contains("data.mdb is corrupt: ") && error.contains("remove data.mdb"), "{error}");
                assert!(
                    error.contains(folder.0.file_name().and_then(|name| name.to_str()).expect("a name")),
                    "{error}"
                );
            }
            // The damage is in free or unused bytes: every state is intact.
            Ok(store) => {
                let limit = bucket(&store, 3.0);
                assert_eq!(granted(&store, &limit, "key 399", 3), 2, "round {round}");
                assert_eq!(granted(&store, &limit, &format!("new {round}"), 4), 3);
            }
        }
    }
    // Where the keys are depends on the folder's random secret.
    assert!(reported > 21, "{reported} of 60 damaged files were reported");
}

#[test]
fn a_damaged_secret_or_instant_of_the_dropped_states_is_reported() {
    let (folder, path, whole) = written();
    let mut file = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    // A value follows its key. Another secret would make every key fresh.
    for (name, length) in [("settings", 40), ("fresh from", 16)] {
        for byte in 0..length {
            let mut write = |flip: u8| {
                for key in copies(&whole[..1 << 20], name.as_bytes()) {
                    let at = key + name.len() + byte;
                    file.seek(SeekFrom::Start(at as u64)).expect("a place");
                    file.write_all(&[whole[at] ^ flip]).expect("a byte");
                }
            };
            write(1 << (byte % 8));
            let error = folder.open_with(Options::default()).expect_err(&format!("byte {byte} of {name}"));
            assert!(error.contains("data.mdb is corrupt: "), "{error}");
            write(0);
        }
    }
    assert_eq!(granted(&folder.open(), &bucket(&folder.open(), 3.0), "key 399", 3), 2);
}

/// The byte offsets of every copy of `part`.
fn copies(bytes: &[u8], part: &[u8]) -> Vec<usize> {
    (0..bytes.len() - part.len()).filter(|&at| bytes[at..].starts_with(part)).collect()
}

#[test]
fn a_row_that_is_damaged_while_the_folder_is_open_is_an_error_and_never_a_fresh_key() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "ann", 3), 3);
    let path = folder.0.join("data.mdb");
    let places = copies(&fs::read(&path).expect("a file")[..1 << 20], &NOW.to_le_bytes());
    assert!(!places.is_empty());
    // Processes map the file, so they read what is written to it.
    let mut file = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    for place in places {
        file.seek(SeekFrom::Start(place as u64)).and_then(|_| file.write_all(&[0xff])).expect("a byte");
    }
    for key in ["ann", "bob"] {
        let got = store.decide(&limit, Some(key.as_bytes()), Call::at(NOW)).map(|decision| decision.ok);
        let error = got.expect_err("bob's new row reads its neighbours, to drop a full one").to_string();
        assert!(error.contains("a state is not what was written"), "{key}: {error}");
    }
    assert!(store.value(&limit, Some(b"ann"), NOW).is_err());
}

/// Where LMDB keeps the fields of its newest meta page: see `mdb.c`.
fn newest_meta(file: &[u8]) -> usize {
    let txn = |meta: usize| u64::from_le_bytes(file[meta + 144..meta + 152].try_into().expect("8 bytes"));
    if txn(4096) > txn(0) { 4096 } else { 0 }
}

#[test]
fn a_page_that_is_used_and_free_or_beyond_the_end_is_reported() {
    let (folder, path, whole) = written();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes"));
    let meta = newest_meta(&whole);
    let (free_root, main_root, last) = (number(meta + 16 + 24 + 40), number(meta + 16 + 72 + 40), meta + 16 + 120);
    // The leaf of the free pages. A list is its length, then its pages, from the last to the first.
    let leaf = free_root as usize * 4096;
    let list = leaf + usize::from(u16::from_le_bytes([whole[leaf + 16], whole[leaf + 17]])) + 16;
    let count = number(list) as usize;
    // Where the used page does not break that order.
    let later = (1..=count).filter(|i| number(list + 8 * i) > main_root).count();
    let place = list + 8 * (later + 1).min(count);
    let reported = |at: usize, number: u64| {
        let mut damaged = whole.clone();
        damaged[at..at + 8].copy_from_slice(&number.to_le_bytes());
        fs::write(&path, damaged).expect("a file");
        folder.open_with(Options::default()).expect_err("damaged")
    };
    let twice = reported(place, main_root);
    assert!(twice.contains("used twice"), "{twice}");
    let end = reported(last, main_root.max(free_root) - 1);
    assert!(end.contains("is beyond its end"), "{end}");
}

#[test]
fn a_process_waits_while_another_one_opens_the_folder() {
    let folder = Temporary::new();
    fs::create_dir(&folder.0).expect("a folder");
    let gate = folder.0.join("gate.lock");
    let held = fs::File::create(&gate).expect("a file");
    held.lock().expect("a lock");
    // Handles of the file, of which one is `held`: the other process has come so far that it tries to lock it.
    let handles = || {
        let all = fs::read_dir("/proc/self/fd").expect("a folder").flatten();
        all.filter(|handle| fs::read_link(handle.path()).is_ok_and(|path| path == gate)).count()
    };
    let store = std::thread::scope(|scope| {
        let opening = scope.spawn(|| folder.open_with(Options::default()));
        while cfg!(target_os = "linux") && !opening.is_finished() && handles() < 2 {
            std::thread::yield_now();
        }
        // Without patience, it fails in this time. With it, the time does not matter.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!opening.is_finished());
        held.unlock().expect("a lock");
        opening.join().expect("no panic")
    });
    let store = store.expect("a store");
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 4), 3);
}

#[test]
fn a_truncated_or_foreign_file_is_reported_as_corrupt() {
    let (folder, path, whole) = written();
    for wrong in [&whole[..20_000], &whole[..4096], &[], b"SQLite format 3\0", &[0xff; 9000]] {
        fs::write(&path, wrong).expect("a file");
        let error = folder.open_with(Options::default()).expect_err("damaged");
        assert!(error.contains("data.mdb is corrupt"), "{} bytes: {error}", wrong.len());
    }
    fs::remove_file(&path).expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key 399", 4), 2, "the snapshot took its place");
}

#[test]
fn a_path_that_is_a_file_is_rejected_with_the_remedy() {
    let folder = Temporary::new();
    fs::write(&folder.0, "a file").expect("a file");
    let error = folder.open_with(Options::default()).expect_err("a file");
    assert!(error.contains("the folder cannot be used") && error.contains("use the path of a folder"), "{error}");
    fs::remove_file(&folder.0).expect("a file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_on_which_no_folder_can_be_made_is_rejected_with_the_remedy() {
    let long = std::env::temp_dir().join("a".repeat(300));
    for path in [Path::new("/proc/x"), &long] {
        let error = open(path, Options::default()).expect_err("no folder").to_string();
        assert!(error.contains("; use the path of a folder on a local disk"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_forked_child_is_refused_and_its_parent_goes_on() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "ann", 1), 1);
    // Safety: the child calls only `decide`, `open` and `_exit`, and runs no destructor of the parent.
    let status = unsafe {
        match libc::fork() {
            0 => {
                let refused = store.decide(&limit, Some(b"ann"), Call::at(NOW)).is_err()
                    && folder.open_with(Options::default()).is_err_and(|error| error.contains("forked"));
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

/// Another process would make the folder anew, and share nothing with this one.
#[cfg(unix)]
#[test]
fn a_folder_that_was_removed_while_it_is_open_opens_once_it_is_closed() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "key", 4), 3);
    fs::remove_dir_all(&folder.0).expect("our own folder");
    for _ in 0..2 {
        let error = folder.open_with(Options::default()).expect_err("no folder");
        assert!(error.contains("it was removed or renamed while this process has it open"), "{error}");
    }
    drop((limit, store));
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 3.0), "key", 4), 3);
    assert!(std::sync::Arc::ptr_eq(&store, &folder.open()));
}

/// The process that has it open writes its snapshots by the path.
#[cfg(unix)]
#[test]
fn a_folder_made_in_place_of_a_renamed_one_gets_no_snapshot_of_it() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    assert_eq!(granted(&store, &limit, "key", 1), 1);
    let renamed = Temporary::new();
    fs::rename(&folder.0, &renamed.0).expect("our own folder");
    fs::create_dir(&folder.0).expect("in its place");
    for name in ["owner.lock", "snapshot.mdb"] {
        fs::write(folder.0.join(name), "another's").expect("our own folder");
    }
    let error = folder.open_with(Options::default()).expect_err("another folder");
    assert!(error.contains("it was removed or renamed while"), "{error}");
    drop((limit, store));
    assert_eq!(fs::read(folder.0.join("snapshot.mdb")).expect("another's"), b"another's");
}
