//! The cost of a request: a number of tokens, or what the client states, within bounds.

use crate::algorithm::names;
use crate::descriptor::{Descriptor, Source};
use crate::fields::Fields;
use crate::limit::Limit;
use crate::number::shown;
use crate::problem::Report;
use crate::tree::{Tree, quoted};
use serde::Serialize;
use tidegate_core::{Field, Kind};

/// Tokens that a request takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The header or query parameter in which the client states it. `None`: every request costs `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Descriptor>,
    /// Tokens if the client states no usable number.
    pub default: f64,
    /// The least cost, whatever the client states.
    pub min: f64,
    /// The highest cost, whatever the client states; `None`: the most that the limit can ever grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

pub(crate) const FIELDS: [&str; 4] = ["source", "default", "min", "max"];
/// The same inside an `algorithm_config`.
pub(crate) const ALIASES: [&str; 3] = ["cost_source", "fixed_cost", "default_cost"];
const EXPECTS: &str = "\"fixed\", or \"header:\" or \"query:\" followed by a name of 1 to 128 characters";
const WHOLE: &str = "a number of tokens, or an object with source, default, min, max";

/// The range of a number, from 0.
struct Bounds {
    most: f64,
    /// Whether 0 itself is out of range.
    above_zero: bool,
    /// Whether `most` is what the limit grants.
    granted: bool,
}

impl Bounds {
    const fn up_to(most: f64) -> Bounds {
        Bounds { most, above_zero: false, granted: false }
    }
}

/// Reads a number of tokens within the bounds, or reports a mistake. An absent field is `otherwise`.
fn tokens(tree: Option<&Tree>, path: &str, bounds: &Bounds, otherwise: f64, report: &mut Report<'_>) -> f64 {
    let Bounds { most, above_zero, granted } = *bounds;
    let default = Tree::Number(otherwise);
    match tree.unwrap_or(&default) {
        Tree::Number(value) if *value >= 0.0 && *value <= most && !(above_zero && *value == 0.0) => *value + 0.0,
        other => {
            let range = if above_zero { "above 0 and up to" } else { "from 0 to" };
            let expected = format!("a finite number of tokens {range} {}", shown(most));
            let above = matches!(other, Tree::Number(value) if *value > most);
            let hint = (granted && above).then(|| "the limit never grants more at once".to_owned());
            report.add(path, expected, other.shown(), hint);
            otherwise
        }
    }
}

fn source(tree: Option<&Tree>, path: &str, report: &mut Report<'_>) -> Option<Descriptor> {
    let Some(Tree::Text(text)) = tree else { return report.refuse(path, EXPECTS, tree) };
    let found = Descriptor::parse(text).filter(|found| matches!(found.source, Source::Header | Source::Query));
    if found.is_none() && text != "fixed" {
        report.add(path, EXPECTS.into(), quoted(text), None);
    }
    found
}

impl Cost {
    /// Reads `cost`, or its aliases in the `algorithm_config`.
    pub(crate) fn read(
        tree: Option<&Tree>,
        config: Option<&Fields<'_>>,
        limit: Option<&Limit>,
        report: &mut Report<'_>,
    ) -> Cost {
        let most = limit.map_or(Field::Count.bound().max, |limit| limit.grantable);
        let alias = config.and_then(|config| Some((config, ALIASES.iter().find(|name| config.get(name).is_some())?)));
        if let Some((config, name)) = alias {
            if tree.is_none() {
                return Cost::aliased(config, most, report);
            }
            config.wrong(name, "absent if the rule has a `cost`", report);
        }
        match tree {
            None | Some(Tree::Number(_)) => Cost::fixed(tree, most, report),
            Some(Tree::Map(_)) => {
                let Some(fields) = Fields::read(tree, "cost", &FIELDS, "a cost", report) else {
                    return Cost::fixed(None, most, report);
                };
                let stated = source(fields.get("source"), "cost.source", report);
                let ceiling = Field::Count.bound().max;
                let given = fields.get("max");
                let any = Bounds::up_to(ceiling);
                let max = given.map(|max| tokens(Some(max), "cost.max", &any, most, report));
                let granted = max.is_none_or(|max| max > most);
                let bounds = Bounds { granted, ..Bounds::up_to(max.unwrap_or(most).min(most)) };
                let default = tokens(fields.get("default"), "cost.default", &bounds, 1.0, report);
                let bounds = Bounds::up_to(default);
                let min = tokens(fields.get("min"), "cost.min", &bounds, default.min(1.0), report);
                Cost { stated, default, min, max }
            }
            Some(_) => {
                report.wrong("cost", WHOLE, tree);
                Cost { stated: None, default: 1.0, min: 1.0, max: None }
            }
        }
    }

    fn fixed(tree: Option<&Tree>, most: f64, report: &mut Report<'_>) -> Cost {
        let default = tokens(tree, "cost", &Bounds { granted: true, ..Bounds::up_to(most) }, 1.0, report);
        Cost { stated: None, default, min: default, max: Some(default) }
    }

    /// The aliases follow Fairvisor's rules: costs are above 0, and the cost that the source does not use may be
    /// present.
    fn aliased(config: &Fields<'_>, most: f64, report: &mut Report<'_>) -> Cost {
        let given = config.get("cost_source");
        let stated = given.and_then(|_| source(given, &config.at("cost_source"), report));
        if let (None, None, Some(_)) = (given, config.get("fixed_cost"), config.get("default_cost")) {
            let expected = "with a `cost_source`: without one, every request takes `fixed_cost`";
            config.wrong("default_cost", expected, report);
        }
        let mut cost = |name: &str, used: bool| {
            let most = if used { most } else { Field::Count.bound().max };
            let bounds = Bounds { most, above_zero: true, granted: used };
            tokens(config.get(name), &config.at(name), &bounds, 1.0, report)
        };
        let fixed = cost("fixed_cost", stated.is_none());
        let default = cost("default_cost", stated.is_some());
        if stated.is_none() {
            return Cost { stated, default: fixed, min: fixed, max: Some(fixed) };
        }
        Cost { stated, default, min: default.min(1.0), max: None }
    }
}

/// The fields of an `algorithm_config`: the numbers, and the cost's aliases.
pub(crate) fn config_fields(kind: Kind) -> Vec<&'static str> {
    let mut fields = names(kind, false);
    fields.extend(ALIASES);
    fields
}
