use crate::draw::Draw;
use heed::types::Bytes;
use heed::{Database, EnvFlags, EnvOpenOptions};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::TempDir;
use tidegate_core::State;
use tidegate_file::fuzzing::{row, verify};

type Rows = Database<Bytes, Bytes>;

/// A data file of LMDB with some hundred states and some freed pages.
static WRITTEN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    fill(folder.path()).expect("LMDB");
    std::fs::read(folder.path().join("data.mdb")).expect("a data file")
});
/// One folder for all: a process may open a folder once.
static FOLDER: LazyLock<Mutex<TempDir>> = LazyLock::new(|| Mutex::new(TempDir::new().expect("a folder")));

/// Any bytes are a row that reads back as it was written, or none; and any data file, however damaged, is reported
/// as corrupt, or LMDB can read and write all of it.
pub fn file(data: &[u8]) {
    let mut draw = Draw::new(data);
    if draw.yes() {
        rows(data);
        let _ = verify::used(data.get(..verify::HEAD as usize).unwrap_or(data));
        let _ = verify::verify(data);
        return;
    }
    let mut damaged = WRITTEN.clone();
    for _ in 0..40 {
        if draw.is_empty() {
            break;
        }
        // Mostly in the header of a page.
        let page = usize::from(draw.below((damaged.len() / 4096) as u16)) * 4096;
        let within = if draw.yes() { 176 } else { 4096 };
        let at = page + usize::from(draw.below(within));
        damaged[at] = draw.byte();
    }
    if verify::verify(&damaged).is_ok() {
        assert!(verify::used(&damaged).expect("it is sound") <= damaged.len() as u64);
        let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::write(folder.path().join("data.mdb"), &damaged).expect("a data file");
        // LMDB may reject the file. It must not end the process.
        let _ = follow(folder.path());
    }
}

fn rows(data: &[u8]) {
    let Some((key, row)) = data.split_first_chunk::<{ row::KEY }>() else { return };
    if let Some((state, full_at)) = row::read(key, row) {
        assert_eq!(row::write(key, state, full_at), row);
    }
    if let Some((numbers, _)) = row.split_first_chunk::<24>() {
        let [value, ts, full_at] = [0, 8, 16].map(|at| f64::from_le_bytes(numbers[at..at + 8].try_into().expect("8")));
        if let Ok(state) = State::new(value, ts) {
            let (read, at) = row::read(key, &row::write(key, state, full_at)).expect("what was written is no row");
            let bits = |state: State, at: f64| [state.value(), state.ts(), at].map(f64::to_bits);
            assert_eq!(bits(read, at), bits(state, full_at));
        }
    }
}

fn open(folder: &Path) -> heed::Result<heed::Env> {
    // Safety: no other process has this folder. Unsynced, since it is not kept.
    unsafe { EnvOpenOptions::new().map_size(1 << 20).flags(EnvFlags::NO_LOCK | EnvFlags::NO_SYNC).open(folder) }
}

fn key(i: u32) -> [u8; row::KEY] {
    u128::from(i).wrapping_mul(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef).to_be_bytes()
}

fn fill(folder: &Path) -> heed::Result<()> {
    let env = open(folder)?;
    let state = State::new(-2.5, 1e12).expect("a state");
    let mut txn = env.write_txn()?;
    let rows: Rows = env.create_database(&mut txn, None)?;
    rows.put(&mut txn, b"settings", &row::sealed(b"settings", &[7; 32]))?;
    for i in 0..300 {
        rows.put(&mut txn, &key(i), &row::write(&key(i), state, 2e12))?;
    }
    txn.commit()?;
    for from in [0, 60] {
        let mut txn = env.write_txn()?;
        for i in from..from + 50 {
            rows.delete(&mut txn, &key(i))?;
        }
        txn.commit()?;
    }
    env.prepare_for_closing().wait();
    Ok(())
}

fn follow(folder: &Path) -> heed::Result<()> {
    let env = open(folder)?;
    let done = follow_in(&env);
    env.prepare_for_closing().wait();
    done
}

fn follow_in(env: &heed::Env) -> heed::Result<()> {
    let mut txn = env.write_txn()?;
    let Some(rows) = env.open_database::<Bytes, Bytes>(&txn, None)? else { return Ok(()) };
    let mut keys = Vec::new();
    for entry in rows.iter(&txn)? {
        let (key, value) = entry?;
        assert!(key.len() != row::KEY || row::read(key, value).is_some(), "a row that is not what was written");
        keys.push(key.to_vec());
    }
    let state = State::new(1.0, 1e12).expect("a state");
    for i in 0..40 {
        rows.put(&mut txn, &key(1000 + i), &row::write(&key(1000 + i), state, 2e12))?;
    }
    for key in keys.iter().step_by(2) {
        rows.delete(&mut txn, key)?;
    }
    txn.commit()
}
