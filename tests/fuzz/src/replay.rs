use std::io::Cursor;
use tidegate_replay::{Error, Options, Replay, Replayed};

/// Any bytes in any chunks are a log, in which each line is a request that is decided once, or a bad line; otherwise
/// the replay returns an error.
pub fn replay(data: &[u8]) {
    let Some((first, log)) = data.split_first() else { return };
    let format = [None, Some("common"), Some("json"), Some("csv")][usize::from(first & 3)];
    let key = [None, Some(["path"])][usize::from(first >> 2 & 1)];
    let cost = [None, Some("cost")][usize::from(first >> 3 & 1)];
    let options = serde_json::json!({
        "format": format, "key": key, "cost": cost,
        "limits": ["rate=2 period=1s", "kind=fixed_window rate=5 period=1m start=0"], "maxKeys": 50,
    });
    let options: Options = serde_json::from_value(options).expect("options");
    let replay = Replay::new(&options, [1, 2], Box::new(Cursor::new(Vec::new()))).expect("legal options");
    match run(replay, log, usize::from(first >> 4) * 10) {
        Ok(replayed) => {
            let report = replayed.report;
            assert_eq!(report.granted + report.denied, report.read.requests);
            assert_eq!(report.read.requests + report.read.bad, report.read.lines);
            assert!(report.read.from <= report.read.to && report.tokens_granted <= report.tokens);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Replays a log in chunks of this size; in one where it is 0.
fn run(mut replay: Replay, log: &[u8], size: usize) -> Result<Replayed, Error> {
    replay.begin("the log")?;
    for chunk in log.chunks(if size == 0 { log.len().max(1) } else { size }) {
        replay.push(chunk)?;
    }
    replay.finish()
}
