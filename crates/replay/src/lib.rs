//! What a limit would have done to the traffic in a log.
//!
//! The requests are read from access logs, JSON lines or CSV, and decided by the very table and algebra that a server
//! uses, on the log's own clock. So the answer is the one that the server would have given, to the bit; a clock that
//! steps back is handled as everywhere, and counted. Everything is bounded: a log is streamed, states and the counts of
//! keys have a room that is told when it was too small. The requests themselves go to a temporary file, for what takes
//! another look: the least capacity that denies nothing, and a policy for a budget of denials.
//!
//! ```
//! use tidegate_replay::{Options, replay};
//!
//! let file = tempfile::NamedTempFile::new()?;
//! std::fs::write(&file, "time,ip\n0,10.0.0.1\n0,10.0.0.1\n0,10.0.0.1\n500,10.0.0.1\n")?;
//! let options: Options = serde_json::from_value(serde_json::json!({
//!     "files": [file.path()],
//!     "limits": ["rate=2 period=1s"],
//! }))?;
//! let report = replay(&options, &mut |_| {})?.report;
//! assert_eq!((report.granted, report.denied), (3, 1)); // the log's seconds count from 1970
//! assert_eq!(report.limits[0].smallest_capacity, Some(3.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod capacity;
mod chart;
mod error;
mod fields;
mod format;
mod heavy;
mod html;
mod inline;
mod judge;
mod key;
mod lines;
mod options;
mod reader;
mod report;
mod run;
mod search;
mod series;
mod source;
mod subject;
mod suggest;
mod tally;
mod text;
mod time;
mod top;
mod trace;

pub use error::Error;
pub use format::Format;
pub use options::Options;
pub use reader::Progress;
pub use report::{BadLine, LimitReport, PeakReport, Read, Report, Suggestion, Waits, WorstKey};
pub use run::{Replayed, replay};
pub use source::STDIN;
