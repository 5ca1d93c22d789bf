//! Replays the traffic of a log against limits.
//!
//! The requests are read from access logs, JSON lines or CSV, and decided by the table and algebra that a server
//! uses, on the log's own clock. So every decision equals the one of the server, to the bit. Requests out of order are
//! counted. Memory is bounded: a log is streamed, and the report states if a limit has more
//! keys than are held. The requests are kept in a spool of the host for further passes: the least
//! capacity that denies nothing, and a policy for a budget of denials.
//!
//! The library reads no file and no clock. The host passes the bytes of each log, unpacked, and a spool. In the npm
//! package `tidegate-replay` that is JavaScript, which calls the WebAssembly of this crate.
//!
//! ```
//! use std::io::Cursor;
//! use tidegate_replay::{Options, Replay};
//!
//! let limits = serde_json::json!({ "limits": ["rate=2 period=1s"] });
//! let options: Options = serde_json::from_value(limits)?;
//! let mut replay = Replay::new(&options, [1, 2], Box::new(Cursor::new(Vec::new())))?;
//! replay.begin("access.csv")?;
//! replay.push(b"time,ip\n0,10.0.0.1\n0,10.0.0.1\n0,10.0.0.1\n500,10.0.0.1\n")?;
//! let report = replay.finish()?.report;
//! assert_eq!((report.granted, report.denied), (3, 1)); // the log's seconds count from 1970
//! assert_eq!(report.limits[0].smallest_capacity, Some(3.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod capacity;
mod chart;
mod decider;
mod error;
mod fields;
mod format;
mod heavy;
mod html;
mod inline;
mod key;
mod lines;
mod options;
mod reader;
mod report;
mod run;
mod scope;
mod search;
mod series;
mod subject;
mod suggest;
mod svg;
mod tally;
mod text;
mod time;
mod top;
mod trace;
mod wasm;

pub use error::Error;
pub use format::Format;
pub use options::Options;
pub use report::{BadLine, LimitReport, PeakReport, Read, Report, Suggestion, Waits, WorstKey};
pub use run::{Replay, Replayed};
pub use trace::Spool;
