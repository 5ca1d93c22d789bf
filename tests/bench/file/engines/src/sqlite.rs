//! SQLite through rusqlite, with a write-ahead log.

use crate::Engine;
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use std::path::Path;
use std::time::Duration;
use tidegate_core::{Rule, State, decode, encode};

pub struct Sqlite {
    connection: Connection,
    reads_first: bool,
}

fn read(statement: &mut CachedStatement<'_>, key: &[u8; 16]) -> Option<State> {
    let row = statement.query_row([&key[..]], |row| Ok(decode(row.get_ref(0)?.as_blob()?).expect("a state")));
    row.optional().expect("a read")
}

impl Sqlite {
    pub fn open(setup: &str, folder: &Path) -> Sqlite {
        let connection = Connection::open(folder.join("states.db")).expect("a file");
        let page = ["4096", "1024"].into_iter().find(|size| setup.contains(size)).expect("a page size");
        let sync = if setup.contains("full") { "FULL" } else { "NORMAL" };
        connection.busy_timeout(Duration::from_secs(10)).expect("a timeout");
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={page}; PRAGMA journal_mode=WAL; PRAGMA synchronous={sync};
                 PRAGMA wal_autocheckpoint=16384; PRAGMA cache_size=-64000; PRAGMA temp_store=MEMORY;
                 CREATE TABLE IF NOT EXISTS states (id BLOB PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;"
            ))
            .expect("a database");
        connection
            .busy_handler(Some(|tries| {
                if tries < 100 {
                    std::thread::yield_now()
                } else {
                    std::thread::sleep(Duration::from_micros(50))
                }
                true
            }))
            .expect("a handler");
        connection.set_prepared_statement_cache_capacity(16);
        Sqlite { connection, reads_first: setup.contains("reads") }
    }
}

impl Engine for Sqlite {
    fn take(&mut self, key: [u8; 16], rule: &Rule, now: f64) -> bool {
        let prepare = |sql| self.connection.prepare_cached(sql).expect("a statement");
        let mut select = prepare("SELECT state FROM states WHERE id = ?1");
        if self.reads_first && !rule.take(read(&mut select, &key), now, 1.0, false).decision.ok {
            return false;
        }
        prepare("BEGIN IMMEDIATE").execute([]).expect("a transaction");
        let outcome = rule.take(read(&mut select, &key), now, 1.0, false);
        if let Some(state) = outcome.write {
            let mut put =
                prepare("INSERT INTO states VALUES (?1, ?2) ON CONFLICT DO UPDATE SET state = excluded.state");
            put.execute([&key[..], &encode(state)[..]]).expect("a write");
        }
        prepare("COMMIT").execute([]).expect("a commit");
        outcome.decision.ok
    }
}
