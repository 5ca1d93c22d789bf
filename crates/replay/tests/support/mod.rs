//! Logs in temporary files, and what a replay says of them.
#![allow(dead_code, reason = "each test uses a part")]

use serde_json::{Value, json};
use std::io::Write;
use tempfile::NamedTempFile;
use tidegate_replay::{Error, Options, Replayed, replay};

/// A file with this in it; it goes when it is dropped.
pub(crate) fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file
}

/// Replays one log; `more` are further options.
pub(crate) fn run(content: impl AsRef<[u8]>, more: Value) -> Result<Replayed, Error> {
    let file = file(content);
    let mut options = json!({ "files": [file.path()] });
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let options: Options = serde_json::from_value(options).unwrap();
    replay(&options, &mut |_| {})
}

/// CSV of requests: ms, key, tokens.
pub(crate) fn csv(requests: &[(u64, u8, f64)]) -> String {
    let rows =
        requests.iter().map(|(now, key, count)| format!("{}.{:03},k{key},{count}\n", EPOCH_S + now / 1000, now % 1000));
    format!("time,key,cost\n{}", rows.collect::<String>())
}

/// A time that is not taken for another unit.
pub(crate) const EPOCH_S: u64 = 1_700_000_000;
