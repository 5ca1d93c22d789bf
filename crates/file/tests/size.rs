//! The size of the mapped files, on the disk and where the process may not write so much. One test, since the limit is that of
//! the process.
#![cfg(target_os = "linux")]

mod temporary;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use temporary::{Temporary, bucket, granted};
use tidegate_file::Options;

#[test]
fn all_blocks_of_mapped_files_are_reserved_or_opening_fails() {
    let options = Options { max_keys: Some(NonZeroU32::MIN), sync: None };
    let folder = Temporary::new();
    let store = folder.open_with(options).expect("a store");
    let bytes = store.stats().expect("stats").bytes;
    let reserved = |name: &str| {
        let found = std::fs::metadata(folder.0.join(name)).expect("a file");
        assert!(found.blocks() * 512 >= found.len(), "{name}: {found:?}");
        found.len()
    };
    assert_eq!(reserved("data.mdb"), bytes);
    assert!(reserved("lock.mdb") > 0);
    drop(store);
    // As a copy that leaves out zeros, of a file that is larger than this `max_keys` needs.
    let data = std::fs::OpenOptions::new().write(true).open(folder.0.join("data.mdb")).expect("a file");
    data.set_len(bytes + (1 << 20)).expect("a length");
    drop(folder.open_with(options).expect("a store"));
    assert_eq!(reserved("data.mdb"), bytes + (1 << 20));

    let limit = getrlimit(Resource::Fsize);
    let allow = |bytes| setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), ..limit }).expect("a lower limit");
    allow(bytes);
    let other = Temporary::new();
    let exact = other.open_with(options).expect("a file of exactly this size");
    assert_eq!(granted(&exact, &bucket(&exact, 3.0), "ann", 4), 3);
    // Without the check, the system ends this process.
    allow(bytes - 1);
    let error = Temporary::new().open_with(options).expect_err("a larger file");
    let what = format!("a file of {bytes} bytes is needed, and this process may write {}: ", bytes - 1);
    assert!(error.contains(&what) && error.contains("ulimit -f"), "{error}");
}
