//! `algorithm` and `algorithm_config`, with our fields or their aliases, become a policy of the core.

use crate::fields::Fields;
use crate::nearest::nearest;
use crate::number::{parsed, shown};
use crate::problem::Report;
use crate::tree::{Tree, quoted};
use tidegate_core::{Config, FIRST_REQUEST, Field, Kind, Policy};

/// The names of the kinds in a document.
pub(crate) const ALGORITHMS: [(&str, Kind); 2] =
    [("token_bucket", Kind::TokenBucket), ("fixed_window", Kind::FixedWindow)];

/// The numbers of a config: each name with its field. The aliases of `rate` are tokens per second, and imply the
/// period.
const NUMBERS: [(Field, &str); 9] = [
    (Field::Rate, "rate"),
    (Field::Rate, "tokens_per_second"),
    (Field::Rate, "rps"),
    (Field::Period, "period"),
    (Field::Capacity, "capacity"),
    (Field::Capacity, "burst"),
    (Field::MaxReserved, "maxReserved"),
    (Field::Start, "start"),
    (Field::Shards, "shards"),
];
/// The `start` of windows that begin at a key's first request.
pub(crate) const FIRST: &str = "first request";
/// Names of a rate in tokens per second.
pub(crate) const PER_SECOND: [&str; 2] = ["tokens_per_second", "rps"];
const SECOND: f64 = 1000.0;
/// Fields that are a number of ms, or a duration as text.
pub(crate) const TIMES: [Field; 3] = [Field::Period, Field::Start, Field::For];
/// The units, and their length in ms. `ms` is before `s`, because it ends in `s`.
const UNITS: [(&str, f64); 6] =
    [("ms", 1.0), ("s", SECOND), ("m", 60e3), ("h", 3600e3), ("d", 86_400e3), ("w", 604_800e3)];
/// Fields of a rule that its tiers share, because they determine where the state is stored.
pub(crate) const SHARED: [&str; 2] = ["start", "shards"];

/// The rule's `algorithm`; `None` if it is wrong, which is reported.
pub(crate) fn kind(tree: Option<&Tree>, report: &mut Report<'_>) -> Option<Kind> {
    let known = ALGORITHMS.map(|(name, _)| name);
    let expected = known.map(quoted).join(" or ");
    if let Some(Tree::Text(text)) = tree {
        if let Some((_, kind)) = ALGORITHMS.iter().find(|(name, _)| name == text) {
            return Some(*kind);
        }
        let hint = nearest(text, &known).map(|name| format!("did you mean {}?", quoted(name)));
        report.add("algorithm", expected, quoted(text), hint);
    } else {
        report.wrong("algorithm", expected, tree);
    }
    None
}

/// The numbers that a config of this kind has.
pub(crate) fn numbers(kind: Kind, tier: bool) -> impl Iterator<Item = (Field, &'static str)> {
    let fits = move |name| !(tier && SHARED.contains(&name)) && (name != "start" || kind == Kind::FixedWindow);
    NUMBERS.into_iter().filter(move |(_, name)| fits(name))
}

pub(crate) fn names(kind: Kind, tier: bool) -> Vec<&'static str> {
    numbers(kind, tier).map(|(_, name)| name).collect()
}

/// A duration such as `15m` in ms; `None` if the text is not a duration.
fn duration(text: &str) -> Option<f64> {
    let (unit, ms) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let amount = text.strip_suffix(unit)?;
    let (integer, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(integer) || !digits(fraction) {
        return None;
    }
    Some(duration_ms(parsed(amount)?, ms))
}

/// `amount` units of `unit` ms each, in ms. A decimal fraction has no exact double: 1.005 * 1000 is 1004.9999999999999, so a
/// product that is whole but for its rounding is that whole number.
///
/// ```
/// assert_eq!(tidegate_policy::duration_ms(1.005, 1000.0), 1005.0);
/// assert_eq!(tidegate_policy::duration_ms(0.5, 1.0), 0.5);
/// ```
#[must_use]
pub fn duration_ms(amount: f64, unit: f64) -> f64 {
    let ms = amount * unit;
    let whole = ms.round();
    if (ms - whole).abs() <= ms * f64::EPSILON { whole } else { ms }
}

/// The ms of a number, or of a duration's text; `None` for anything else.
pub(crate) fn ms(tree: &Tree) -> Option<f64> {
    match tree {
        Tree::Number(value) => Some(*value),
        Tree::Text(text) => duration(text),
        _ => None,
    }
}

/// The end of the sentence "`field` must be …".
pub(crate) fn expects(field: Field) -> String {
    let bound = field.bound().expects;
    if TIMES.contains(&field) { format!("{bound}, or a string such as \"15m\"") } else { bound.into() }
}

/// The number under the first of its names that is given.
fn number(fields: &Fields<'_>, field: Field, report: &mut Report<'_>) -> Option<f64> {
    let names = NUMBERS.iter().filter(|(of, _)| *of == field).map(|(_, name)| *name);
    let mut given = names.filter(|name| fields.get(name).is_some());
    let first = given.next()?;
    let checked = |value| field.check(value).ok();
    let number = match fields.get(first)? {
        Tree::Number(value) => checked(*value),
        Tree::Text(text) if field == Field::Start && text == FIRST => Some(FIRST_REQUEST),
        tree if TIMES.contains(&field) => ms(tree).and_then(checked),
        _ => None,
    };
    if number.is_none() {
        fields.wrong(first, expects(field), report);
    }
    for name in given {
        let expected = format!("absent if `{first}` is given: both set the same number");
        fields.wrong(name, expected, report);
    }
    number
}

/// Tokens per period, under any of its names.
fn rate(fields: &Fields<'_>, per_second: Option<&str>, report: &mut Report<'_>) -> Option<f64> {
    if per_second.is_none() && fields.get("rate").is_none() {
        let remedy = "give `rate` and `period`, or `rps`, tokens a second";
        report.add(&fields.at("rate"), expects(Field::Rate), "nothing".into(), Some(remedy.into()));
    }
    number(fields, Field::Rate, report)
}

/// The period in ms: that of a rate per second, or the one that is given with `rate`.
fn period(fields: &Fields<'_>, per_second: Option<&str>, report: &mut Report<'_>) -> Option<f64> {
    match (per_second, fields.get("period")) {
        (Some(alias), Some(_)) if fields.get("rate").is_none() => {
            fields.refuse("period", format!("absent if `{alias}` is given: its period is 1000 ms"), report)
        }
        (Some(_), None) => Some(SECOND),
        (None, None) => fields.refuse("period", expects(Field::Period), report),
        _ => number(fields, Field::Period, report),
    }
}

/// The policy of an `algorithm_config`, or of a tier's settings with what the rule shares. `None` if it has
/// mistakes, which are reported.
pub(crate) fn policy(
    fields: &Fields<'_>,
    kind: Kind,
    shared: Option<&Policy>,
    report: &mut Report<'_>,
) -> Option<Policy> {
    let before = report.count();
    let per_second = PER_SECOND.into_iter().find(|name| fields.get(name).is_some());
    let (rate, period) = (rate(fields, per_second, report), period(fields, per_second, report));
    let mut optional = |field| number(fields, field, report);
    let (capacity, max_reserved) = (optional(Field::Capacity), optional(Field::MaxReserved));
    let (start, shards) = match shared {
        Some(rule) => (rule.start(), Some(f64::from(rule.shards()))),
        None => (optional(Field::Start), optional(Field::Shards)),
    };
    // A rule of the systems that these aliases are from.
    if let (Some(alias), Some(rate), Some(burst)) =
        (per_second, rate, capacity.filter(|_| fields.get("burst").is_some()))
        && burst < rate
    {
        let expected = format!("at least `{alias}`, which is {}", shown(rate));
        let hint = Some("give `capacity` for a smaller bucket".into());
        report.add(&fields.at("burst"), expected, shown(burst), hint);
    }
    if report.count() > before {
        return None;
    }
    let config = Config { kind, rate: rate?, period: period?, capacity, max_reserved, start, shards };
    Policy::new(&config).ok()
}
