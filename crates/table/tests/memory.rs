//! What a table does on a host that has no more memory for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidegate_core::{Config, Kind, Policy};
use tidegate_table::{Call, Limit, SharedTable, Stats, Table};

/// The system's allocator, without room for allocations of more bytes than this.
struct Limited(AtomicUsize);

// Safety: every call is one of the system's allocator, or returns null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > self.0.load(Relaxed) {
            return std::ptr::null_mut();
        }
        // Safety: the caller's argument.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // Safety: the caller's arguments, of memory that `alloc` returned.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static MEMORY: Limited = Limited(AtomicUsize::new(usize::MAX));

/// Two requests for both tokens of each key: the first is granted, and the second is denied.
fn flood(mut take: impl FnMut(&[u8], Call) -> bool) {
    for key in 0..20_000_u32 {
        let both = |now| Call { count: 2.0, ..Call::at(now) };
        let now = 1.7e12 + f64::from(key);
        let key = key.to_le_bytes();
        assert_eq!([take(&key, both(now)), take(&key, both(now))], [true, false]);
    }
}

fn evicts_instead_of_growing(stats: Stats) {
    assert!(stats.keys > 1000 && stats.keys < 5000, "{stats:?}");
    assert_eq!(stats.keys as u64 + stats.evicted, 20_001);
}

/// One test at a time, since the memory is that of the process.
static TURN: Mutex<()> = Mutex::new(());

fn limit() -> Limit {
    let policy =
        Policy::new(&Config { rate: 1.0, period: 3.6e6, capacity: Some(2.0), ..Config::new(Kind::TokenBucket) });
    Limit::new([1, 2], "limit", policy.expect("a legal policy"))
}

#[test]
fn without_memory_for_a_larger_segment_a_new_key_evicts_another_and_a_debtor_stays() {
    let _turn = TURN.lock().expect("the other test passes");
    let limit = limit();
    let (mut own, shared) = (Table::new(50_000, [1, 2]), SharedTable::new(50_000, [1, 2]));
    let debt = Call { op: tidegate_table::Op::Charge, count: 100.0, ..Call::at(1.7e12) };
    own.decide(&limit, Some(b"debtor"), debt);
    shared.decide(&limit, Some(b"debtor"), debt);
    // A segment of about 100 places.
    MEMORY.0.store(100 * 32, Relaxed);
    flood(|key, call| own.decide(&limit, Some(key), call).ok);
    flood(|key, call| shared.decide(&limit, Some(key), call).ok);
    MEMORY.0.store(usize::MAX, Relaxed);
    evicts_instead_of_growing(own.stats());
    evicts_instead_of_growing(shared.stats());
    let later = Call::at(1.7e12 + 3.6e6);
    assert!(!own.decide(&limit, Some(b"debtor"), later).ok && !shared.decide(&limit, Some(b"debtor"), later).ok);
}

const CHILD: &str = "TIDEGATE_TABLE_WITHOUT_MEMORY";

/// It has no state to drop. In a process of its own, which ends.
#[test]
fn without_memory_for_the_first_states_of_a_segment_the_program_ends_instead_of_trying_for_ever() {
    let _turn = TURN.lock().expect("the other test passes");
    if std::env::var_os(CHILD).is_some() {
        let mut table = Table::new(50_000, [1, 2]);
        let limit = limit();
        MEMORY.0.store(15 * 32, Relaxed);
        table.decide(&limit, Some(b"first"), Call::at(1.7e12));
        MEMORY.0.store(usize::MAX, Relaxed);
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["without_memory_for_the_first_states", "--test-threads=1"]).env(CHILD, "1");
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("this test");
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status.success());
        }
        if started.elapsed() > Duration::from_secs(20) {
            child.kill().expect("a child");
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(ended, Some(false));
}
