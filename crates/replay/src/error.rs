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
        /// What to do with a file of another known format.
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
                write!(f, "\n--time, --key and --cost name other fields")
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

// Without a source: the message has the cause.
impl std::error::Error for Error {}

/// A character of a log for display: no control, and none that turns the direction of the text behind it.
pub(crate) fn visible(c: char) -> char {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { '\u{fffd}' } else { c }
}

/// Text of a log for display: on one line, without control characters, shortened.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 160;
    let text = String::from_utf8_lossy(text);
    let mut left = text.chars();
    let mut kept: String = left.by_ref().take(MOST).map(visible).collect();
    if left.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_up_to_160_characters_and_a_longer_one_is_marked_as_shortened() {
        for one in ["a", "\u{e9}", "\u{1f600}", "\u{fffd}"] {
            assert_eq!(shown(one.repeat(159).as_bytes()), one.repeat(159));
            assert_eq!(shown(one.repeat(160).as_bytes()), one.repeat(160));
            assert_eq!(shown(one.repeat(161).as_bytes()), format!("{}…", one.repeat(160)));
            assert_eq!(shown(one.repeat(1000).as_bytes()), format!("{}…", one.repeat(160)));
        }
        assert_eq!(shown("a\u{202e}b\u{2067}c".as_bytes()), "a\u{fffd}b\u{fffd}c");
        assert_eq!(shown(b"a\tb\x1b\xff"), "a\u{fffd}b\u{fffd}\u{fffd}");
    }
}
