use std::io::Write;
use tempfile::NamedTempFile;
use tidegate_replay::{Error, Options, replay as run};

/// Any bytes are a log whose every line is a request or a bad one, each decided once; or no log, which is said.
pub fn replay(data: &[u8]) {
    let Some((first, log)) = data.split_first() else { return };
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(log).expect("a temporary file");
    let format = [None, Some("common"), Some("json"), Some("csv")][usize::from(first & 3)];
    let key = [None, Some(["path"])][usize::from(first >> 2 & 1)];
    let cost = [None, Some("cost")][usize::from(first >> 3 & 1)];
    let options = serde_json::json!({
        "files": [file.path()], "format": format, "key": key, "cost": cost,
        "limits": ["rate=2 period=1s", "kind=fixed_window rate=5 period=1m start=0"], "maxKeys": 50,
    });
    let options: Options = serde_json::from_value(options).expect("options");
    match run(&options, &mut |_| {}) {
        Ok(replayed) => {
            let report = replayed.report;
            assert_eq!(report.granted + report.denied, report.read.requests);
            assert_eq!(report.read.requests + report.read.bad, report.read.lines);
            assert!(report.read.from <= report.read.to && report.tokens_granted <= report.tokens);
        }
        Err(error @ (Error::Option(_) | Error::Input { .. } | Error::Policy(_))) => panic!("legal options: {error}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
