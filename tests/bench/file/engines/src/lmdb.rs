//! LMDB through heed.

use crate::Engine;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use std::path::Path;
use tidegate_core::{Rule, decode, encode};

pub struct Lmdb {
    env: Env<WithoutTls>,
    states: Database<Bytes, Bytes>,
}

impl Lmdb {
    pub fn open(setup: &str, folder: &Path) -> Lmdb {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(1 << 30);
        let mut flags = EnvFlags::empty();
        if setup.contains("nosync") {
            flags |= EnvFlags::NO_SYNC;
        }
        if setup.contains("writemap") {
            flags |= EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC;
        }
        // Safety: only this run uses the folder.
        let env = unsafe { options.flags(flags).open(folder) }.expect("an environment");
        let mut txn = env.write_txn().expect("a transaction");
        let states = env.create_database(&mut txn, None).expect("a database");
        txn.commit().expect("a commit");
        Lmdb { env, states }
    }
}

impl Engine for Lmdb {
    fn take(&mut self, key: [u8; 16], rule: &Rule, now: f64) -> bool {
        // A denial needs no writer's lock, since its read is consistent.
        let txn = self.env.read_txn().expect("a transaction");
        let before = self.states.get(&txn, &key).expect("a read").map(|bytes| decode(bytes).expect("a state"));
        if !rule.take(before, now, 1.0, false).decision.ok {
            return false;
        }
        drop(txn);
        let mut txn = self.env.write_txn().expect("a transaction");
        let before = self.states.get(&txn, &key).expect("a read").map(|bytes| decode(bytes).expect("a state"));
        let outcome = rule.take(before, now, 1.0, false);
        if let Some(state) = outcome.write {
            self.states.put(&mut txn, &key, &encode(state)).expect("a write");
        }
        txn.commit().expect("a commit");
        outcome.decision.ok
    }
}
