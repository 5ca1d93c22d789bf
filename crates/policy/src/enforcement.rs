//! How a rule is enforced: in shadow mode, without its store, and with blocks of keys that are denied repeatedly.

use crate::algorithm::{expects, ms};
use crate::fields::Fields;
use crate::number::shown;
use crate::problem::Report;
use crate::tree::{Tree, quoted};
use serde::Serialize;
use tidegate_core::{Field, MAX_NAME_BYTES};

/// How a rule is enforced.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Enforcement {
    /// Whether the rule is decided and reported, but denies no request.
    pub shadow: bool,
    /// What the rule does when its store fails; `None`: what the limiter does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_store_error: Option<OnStoreError>,
    /// Blocks keys that are denied repeatedly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
}

/// What a rule does when its store fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnStoreError {
    /// Denies.
    Deny,
    /// Allows.
    Allow,
    /// Decides by a limit in memory, at this fraction of the rate: above 0, up to 1.
    Local(f64),
}

/// Blocks of a key, longer each time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// Denials after which a key is blocked: an integer from 1 to 1,000,000.
    pub after: f64,
    /// The lengths of the blocks, ms; the last one is repeated.
    #[serde(rename = "for")]
    pub lengths: Vec<f64>,
    /// Ms in which denials and earlier blocks are counted.
    pub within: f64,
}

pub(crate) const BLOCK: [&str; 3] = ["after", "for", "within"];
/// The settings that are texts.
pub(crate) const WITHOUT_STORE: [&str; 2] = ["deny", "allow"];
/// The setting that is an object.
pub(crate) const LOCAL: &str = "local";
pub(crate) const MAX_AFTER: f64 = 1e6;
/// Most lengths of blocks.
pub(crate) const MAX_LENGTHS: usize = 100;
const DAY: f64 = 86_400e3;
/// The characters of a name that leave room for the names of the counts.
pub(crate) const MAX_BLOCKED_NAME: usize = MAX_NAME_BYTES - ".denials".len();
/// Suffixes of the rule's name: the limits that count denials and blocks, and let one block begin at a time.
const COUNTS: [&str; 3] = [".denials", ".blocks", ".begins"];

impl Enforcement {
    /// Reads the fields `shadow`, `onStoreError` and `block` of a rule with this name.
    pub(crate) fn read(fields: &Fields<'_>, name: Option<&str>, report: &mut Report<'_>) -> Enforcement {
        let shadow = fields.flag("shadow", report);
        let on_store_error = fields.get("onStoreError").and_then(|tree| OnStoreError::read(tree, report));
        let block = fields.get("block").and_then(|tree| Block::read(tree, report));
        if let (Some(_), Some(name)) = (fields.get("block"), name)
            && name.len() > MAX_BLOCKED_NAME
        {
            let expected = format!("at most {MAX_BLOCKED_NAME} characters with `block`");
            report.add("name", expected, quoted(name), None);
        }
        Enforcement { shadow, on_store_error, block }
    }

    /// The names under which the block of the rule `name` counts; none without a block.
    pub(crate) fn counts(&self, name: &str) -> Vec<String> {
        if self.block.is_none() {
            return Vec::new();
        }
        COUNTS.iter().map(|count| format!("{name}{count}")).collect()
    }
}

impl OnStoreError {
    fn read(tree: &Tree, report: &mut Report<'_>) -> Option<OnStoreError> {
        let expected = "\"deny\", \"allow\", or an object with local, a fraction above 0 and up to 1";
        match tree {
            Tree::Text(text) if text == WITHOUT_STORE[0] => Some(OnStoreError::Deny),
            Tree::Text(text) if text == WITHOUT_STORE[1] => Some(OnStoreError::Allow),
            Tree::Map(_) => {
                let fields = Fields::read(Some(tree), "onStoreError", &[LOCAL], "it", report)?;
                match fields.get(LOCAL) {
                    Some(Tree::Number(local)) if *local > 0.0 && *local <= 1.0 => Some(OnStoreError::Local(*local)),
                    _ => fields.refuse(LOCAL, "a fraction above 0 and up to 1", report),
                }
            }
            other => report.refuse("onStoreError", expected, Some(other)),
        }
    }
}

impl Block {
    fn read(tree: &Tree, report: &mut Report<'_>) -> Option<Block> {
        let fields = Fields::read(Some(tree), "block", &BLOCK, "a block", report)?;
        let after = match fields.get("after") {
            Some(Tree::Number(after)) if (1.0..=MAX_AFTER).contains(after) && after.fract() == 0.0 => Some(*after),
            _ => fields.refuse("after", format!("an integer from 1 to {}", shown(MAX_AFTER)), report),
        };
        let several = format!("a length, or an array of 1 to {MAX_LENGTHS} of them");
        let lengths = match fields.get("for") {
            Some(Tree::List(list)) if (1..=MAX_LENGTHS).contains(&list.len()) => {
                let path = fields.at("for");
                let read = list.iter().enumerate().map(|(at, item)| length(item, &format!("{path}[{at}]"), report));
                read.collect::<Vec<_>>().into_iter().collect()
            }
            Some(Tree::List(list)) => {
                report.add(&fields.at("for"), several, format!("{} of them", list.len()), None);
                None
            }
            Some(one) => length(one, &fields.at("for"), report).map(|ms| vec![ms]),
            None => fields.refuse("for", several, report),
        };
        let within = fields.get("within").map_or(Some(DAY), |tree| length(tree, &fields.at("within"), report));
        Some(Block { after: after?, lengths: lengths?, within: within? })
    }
}

/// The ms of a length, or the text of one.
fn length(tree: &Tree, path: &str, report: &mut Report<'_>) -> Option<f64> {
    let found = ms(tree).and_then(|ms| Field::For.check(ms).ok());
    if found.is_none() {
        report.wrong(path, expects(Field::For), Some(tree));
    }
    found
}
