//! An unchecked document: any JSON value, and the other values that JavaScript can pass.

use crate::number::shown;
use std::fmt::Write;

/// A value of the document. Objects keep every entry in order, so that a repeated one can be reported.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number; from JavaScript also NaN and the infinities.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Tree>),
    /// An object.
    Map(Vec<(String, Tree)>),
    /// A value that JSON lacks, described in a word or two: `a function`.
    Other(String),
}

/// Longest text that an error repeats, in characters.
pub(crate) const SHOWN: usize = 80;

impl Tree {
    /// The value in a word or two, for the end of an error's sentence.
    pub(crate) fn shown(&self) -> String {
        match self {
            Tree::Null => "null".into(),
            Tree::Bool(value) => value.to_string(),
            Tree::Number(value) => shown(*value),
            Tree::Text(text) => quoted(text),
            Tree::List(_) => "an array".into(),
            Tree::Map(_) => "an object".into(),
            Tree::Other(what) => what.clone(),
        }
    }

    /// Whether it is JavaScript's `undefined`: a field with it is absent.
    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Tree::Other(what) if what == "undefined")
    }

    /// A scalar as the text that a request's text is compared with.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Tree::Text(text) => Some(text.clone()),
            Tree::Bool(value) => Some(value.to_string()),
            Tree::Number(value) if value.is_finite() => Some(shown(*value)),
            _ => None,
        }
    }
}

/// What a terminal obeys, and what reverses text or is not seen.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// How much of a text is shown, in characters: of a URL only the scheme, since it may have a password. On bytes: the search of
/// the standard library takes 1 kB of the module.
fn shown_of(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| b"/ ".contains(byte)) {
        Some(at) if at > 1 && bytes[at - 1..].starts_with(b"://") && bytes.len() > at + 2 => {
            SHOWN.min(text.chars().take_while(|character| *character != '/').count() + 2)
        }
        _ => SHOWN,
    }
}

/// A text in quotes, cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let most = shown_of(text);
    for (at, character) in text.chars().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            hidden if is_hidden(hidden) => {
                let _ = write!(out, "\\u{:04x}", u32::from(hidden));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
