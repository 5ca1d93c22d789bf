//! The errors that end a replay. A bad line is counted instead.

use std::{fmt, io};
use tidegate_core::InputError;

/// An error that ends a replay.
#[derive(Debug)]
pub enum Error {
    /// The spool cannot be written or read back. The message is that of the spool, with the file and the remedy.
    Trace(io::Error),
    /// No format fits a file.
    Format {
        /// Its name, as given.
        file: String,
        /// Its first line that is not empty, shortened.
        line: String,
        /// Each format tried, and why it does not fit.
        tried: Vec<(&'static str, String)>,
        /// What to do with a file that is no UTF-8.
        remedy: Option<&'static str>,
    },
    /// No line of any file is a request.
    NoRequests {
        /// Number of lines.
        lines: u64,
        /// Why the first line is not a request.
        first: Option<String>,
    },
    /// A number of a limit is out of its range.
    Input {
        /// The limit's name.
        limit: String,
        /// The field, the rule and the value.
        error: InputError,
    },
    /// The mistakes in the policy document, one per line.
    Policy(String),
    /// An illegal option.
    Option(String),
    /// The chart could not be drawn.
    Chart(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trace(cause) => write!(f, "{cause}"),
            Error::Format { file, remedy: Some(remedy), .. } => write!(f, "{file} has no known format: it is {remedy}"),
            Error::Format { file, line, tried, remedy: None } => {
                write!(f, "{file} has no known format. It begins with\n  {line}\nTried:")?;
                for (format, why) in tried {
                    write!(f, "\n  {format}: {why}")?;
                }
                Ok(())
            }
            Error::NoRequests { lines: 0, .. } => write!(f, "there is nothing to replay: no lines"),
            Error::NoRequests { lines, first } => {
                write!(f, "there is nothing to replay: none of {lines} lines could be used")?;
                first.as_ref().map_or(Ok(()), |why| write!(f, ". The first: {why}"))
            }
            Error::Input { limit, error } => write!(f, "limit {limit:?}: {error}"),
            Error::Policy(text) | Error::Option(text) => write!(f, "{text}"),
            Error::Chart(text) => write!(f, "the chart cannot be drawn: {text}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Trace(cause) => Some(cause),
            Error::Input { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Text of a log for display: on one line, without control characters, shortened.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 160;
    let text = String::from_utf8_lossy(text.get(..text.len().min(MOST * 4)).unwrap_or(text)).into_owned();
    let mut kept: String = text.chars().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > MOST {
        kept.push('…');
    }
    kept
}
