//! The error that ends a replay, and text of a log in messages.

use std::{fmt, io};

/// An error that ends a replay, as the message with its remedy. A bad line is counted instead.
#[derive(Debug)]
pub struct Error(pub(crate) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The spool cannot be written or read back. Its message has the file and the remedy.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error(error.to_string())
    }
}

/// A character of a log for display: no control, and none that turns the direction of the text behind it or is not seen.
pub(crate) fn visible(c: char) -> char {
    let hidden = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    );
    if c.is_control() || hidden { '\u{fffd}' } else { c }
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
        // A key with such a character would look like one without.
        for hidden in ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}', '\u{e0041}'] {
            assert_eq!(shown(format!("a{hidden}b").as_bytes()), "a\u{fffd}b");
        }
    }
}
