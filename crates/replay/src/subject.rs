//! The limits of a replay, from a policy document or from lines, and the fields of a request that each reads.

use crate::error::Error;
use crate::fields::Slots;
use crate::inline;
use crate::options::Options;
use crate::scope::{Cost, Scope};
use tidegate_core::{Config, Kind, Policy};
use tidegate_policy::{Descriptor, Document, Rule, Source};

/// The key of limits that are given without one.
const ADDRESS: &str = "ip";

/// A limit, checked.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Index of its count in the record.
    pub(crate) number: usize,
    pub(crate) name: String,
    /// The fields of its key, as a report names them.
    pub(crate) fields: Vec<String>,
    /// Whether its key is that of a rule of a policy document.
    pub(crate) rule: bool,
    pub(crate) policy: Policy,
    pub(crate) reserve: bool,
    pub(crate) scope: Scope,
}

impl Subject {
    /// The limit's policy with another rate and capacity; `None` if one is out of its range.
    pub(crate) fn with(&self, rate: f64, capacity: f64) -> Option<Policy> {
        Policy::new(&Config { rate, capacity: Some(capacity), ..self.policy.config() }).ok()
    }
}

/// The limits, and notes on what the replay ignores.
pub(crate) fn subjects(options: &Options, slots: &mut Slots) -> Result<(Vec<Subject>, Vec<String>), Error> {
    let column = options.cost.as_deref().map(|name| slots.column(name));
    let (mut subjects, mut notes) = (Vec::new(), Vec::new());
    if let Some(text) = &options.policy {
        let document = Document::parse(text).map_err(|problems| Error(problems.to_string()))?;
        for (number, rule) in document.limits().enumerate() {
            let fallback = number == document.rules.len();
            subjects.push(of_rule(number, rule, fallback, options, column, slots, &mut notes));
        }
    }
    let cost = column.map_or(Cost::Fixed(1.0), Cost::Column);
    let given = options.limits.iter().enumerate().map(|(i, text)| inline::limit(text, i));
    for limit in given.chain(options.proposes().then(|| suggested(options))) {
        let (name, config) = limit?;
        let policy = Policy::new(&config).map_err(|error| Error(format!("limit {name:?}: {error}")))?;
        let names = options.key.clone().unwrap_or_else(|| vec![ADDRESS.to_owned()]);
        let key = slots.key(names.into_iter().map(|name| vec![name]).collect(), false);
        let fields = slots.key_names(key);
        let scope = Scope { key, matches: vec![], fallback: false, shadow: false, cost: cost.clone() };
        if subjects.iter().any(|other| other.name == name) {
            return Err(Error(format!("two limits have the name {name:?}")));
        }
        let number = subjects.len();
        subjects.push(Subject { number, name, fields, rule: false, policy, reserve: false, scope });
    }
    if !options.proposes() && options.period.is_some() {
        return Err(Error("`period` is only for a proposal without a limit; each limit has its own".to_owned()));
    }
    Ok((subjects, notes))
}

/// The limit whose rate and capacity are proposed.
fn suggested(options: &Options) -> Result<(String, Config), Error> {
    if options.suggest.is_none() {
        return Err(Error("there is no limit to replay: give --policy, --limit or --suggest".to_owned()));
    }
    let period = inline::period(options.period.as_deref().unwrap_or("1m")).map_err(Error)?;
    Ok(("suggested".to_owned(), Config { rate: 1.0, period, ..Config::new(Kind::TokenBucket) }))
}

fn of_rule(
    number: usize,
    rule: &Rule,
    fallback: bool,
    options: &Options,
    column: Option<usize>,
    slots: &mut Slots,
    notes: &mut Vec<String>,
) -> Subject {
    if rule.tiers.is_some() {
        notes.push(format!("{}: its tiers are ignored; every request has the rule's own limit", rule.name));
    }
    if rule.enforcement.block.is_some() && !rule.enforcement.shadow {
        notes.push(format!("{}: its block is ignored; a server blocks a key that is denied repeatedly", rule.name));
    }
    if rule.limit.policy.shards() > 1 {
        notes.push(format!("{}: its shards are replayed as one", rule.name));
    }
    let key = match &options.key {
        Some(fields) => fields.iter().map(|name| vec![name.clone()]).collect(),
        None => rule.keys.iter().map(names).collect(),
    };
    let matches = rule.matches.iter().map(|one| (slots.stated(names(&one.at)), one.equals.clone())).collect();
    let cost = match (column, &rule.cost.stated) {
        (Some(column), _) => Cost::Column(column),
        (None, None) => Cost::Fixed(rule.cost.default),
        (None, Some(at)) => Cost::Stated {
            slot: slots.stated(names(at)),
            default: rule.cost.default,
            min: rule.cost.min,
            max: rule.cost.max.unwrap_or(rule.limit.grantable),
        },
    };
    let is_own = options.key.is_none();
    let key = slots.key(key, is_own);
    Subject {
        number,
        name: rule.name.clone(),
        fields: slots.key_names(key),
        rule: is_own,
        // In a table, shards have no effect.
        policy: rule.limit.policy,
        reserve: rule.reserve,
        scope: Scope { key, matches, fallback, shadow: rule.enforcement.shadow, cost },
    }
}

/// Field names that logs use for a place in a request.
fn names(at: &Descriptor) -> Vec<String> {
    let name = at.name.as_str();
    let within = |outer: &[&str]| outer.iter().map(|outer| format!("{outer}{name}")).collect();
    match at.source {
        Source::Ip => vec![ADDRESS.to_owned()],
        Source::Header => within(&["", "http_", "headers.", "req.headers.", "request.headers."]),
        Source::Jwt => within(&["", "jwt.", "claims.", "user."]),
        Source::Query => within(&["", "query.", "req.query.", "request.query."]),
    }
}
