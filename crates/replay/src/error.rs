//! What ends a replay. A bad line does not: it is counted.

use std::{fmt, io};
use tidegate_core::InputError;

/// Why there is no report.
#[derive(Debug)]
pub enum Error {
    /// The spool cannot be written or read back. The message is the spool's own: it names the file and the remedy.
    Trace(io::Error),
    /// No format fits a file.
    Format {
        /// As it was given.
        file: String,
        /// Its first line that is not empty, shortened.
        line: String,
        /// What was tried, and why it does not fit.
        tried: Vec<(&'static str, String)>,
    },
    /// No line of all files could be used.
    NoRequests {
        /// How many lines there were.
        lines: u64,
        /// Why the first was not used.
        first: Option<String>,
    },
    /// A number of a limit is out of its range.
    Input {
        /// The limit's name.
        limit: String,
        /// The field, the rule and what came.
        error: InputError,
    },
    /// The mistakes in the policy document, one per line.
    Policy(String),
    /// An option that fits nothing.
    Option(String),
    /// The picture could not be drawn.
    Chart(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trace(cause) => write!(f, "{cause}"),
            Error::Format { file, line, tried } => {
                write!(f, "{file} has no format that is known. It begins with\n  {line}\nTried:")?;
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
            Error::Chart(text) => write!(f, "the picture cannot be drawn: {text}"),
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

/// Text of a log as it may be shown: on one line, without control characters, not long.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 160;
    let text = String::from_utf8_lossy(text.get(..text.len().min(MOST * 4)).unwrap_or(text)).into_owned();
    let mut kept: String = text.chars().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > MOST {
        kept.push('…');
    }
    kept
}
