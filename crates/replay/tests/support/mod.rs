//! Logs in memory, and what a replay reports of them.
#![allow(dead_code, reason = "each test uses a part")]

use serde_json::Value;
use std::io::Cursor;
use tidegate_replay::{Error, Options, Replay, Replayed};

/// Replays logs, each named and in one chunk.
pub(crate) fn run_all(logs: &[(&str, &[u8])], options: Value) -> Result<Replayed, Error> {
    let options: Options = serde_json::from_value(options).unwrap();
    let mut replay = Replay::new(&options, [1, 2], Box::new(Cursor::new(Vec::new())))?;
    for (name, content) in logs {
        replay.begin(name)?;
        replay.push(content)?;
    }
    replay.finish()
}

/// Replays one log.
pub(crate) fn run(content: impl AsRef<[u8]>, options: Value) -> Result<Replayed, Error> {
    run_all(&[("the.log", content.as_ref())], options)
}

/// CSV of requests: ms, key, tokens.
pub(crate) fn csv(requests: &[(u64, u8, f64)]) -> String {
    let rows =
        requests.iter().map(|(now, key, count)| format!("{}.{:03},k{key},{count}\n", EPOCH_S + now / 1000, now % 1000));
    format!("time,key,cost\n{}", rows.collect::<String>())
}

/// A time that is not taken for another unit.
pub(crate) const EPOCH_S: u64 = 1_700_000_000;
