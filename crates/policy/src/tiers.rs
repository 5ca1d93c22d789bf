//! Settings for each plan, instead of the rule's own `algorithm_config`.

use crate::algorithm;
use crate::cost::Cost;
use crate::descriptor::Descriptor;
use crate::fields::Fields;
use crate::limit::Limit;
use crate::number::shown;
use crate::problem::Report;
use crate::tree::{Tree, quoted};
use serde::Serialize;
use tidegate_core::{Kind, Policy};

/// Limits by the text at one place of the request. They share the rule's state: a client that changes plans keeps its debt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tiers {
    /// The place of the plan's name.
    pub by: Descriptor,
    /// The plans; any other plan has the rule's limit.
    pub settings: Vec<Tier>,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Its name in the request.
    pub name: String,
    /// Its limit.
    pub limit: Limit,
}

pub(crate) const FIELDS: [&str; 2] = ["by", "settings"];

impl Tiers {
    /// Reads `tiers`; `rule` is the rule's own policy, if that has no mistake.
    pub(crate) fn read(
        tree: &Tree,
        (kind, rule): (Kind, Option<&Policy>),
        (cost, reserve): (&Cost, bool),
        report: &mut Report<'_>,
    ) -> Option<Tiers> {
        let fields = Fields::read(Some(tree), "tiers", &FIELDS, "tiers", report)?;
        let by = Descriptor::read(fields.get("by"), "tiers.by", report);
        let expected = "an object with the settings of at least one tier, by its name";
        let named = Fields::open(fields.get("settings"), "tiers.settings", expected, report)?;
        if named.entries().next().is_none() {
            report.add("tiers.settings", expected.into(), "none".into(), None);
        }
        let mut settings = Vec::new();
        for (name, tier) in named.entries() {
            let path = named.at(name);
            if name == "__proto__" {
                report.add(&path, "another name: readers of JSON lose this one".into(), quoted(name), None);
                continue;
            }
            let what = "a tier (`start` and `shards` are the rule's, since they decide where the state is stored)";
            let Some(numbers) = Fields::read(Some(tier), &path, &algorithm::names(kind, true), what, report) else {
                continue;
            };
            let Some(policy) = algorithm::policy(&numbers, kind, rule, report) else { continue };
            let limit = Limit::new(policy, reserve);
            if limit.grantable < cost.default {
                let expected = format!("a limit that can grant the rule's cost, {}", shown(cost.default));
                report.add(&path, expected, format!("at most {}", shown(limit.grantable)), None);
            }
            settings.push(Tier { name: name.to_owned(), limit });
        }
        Some(Tiers { by: by?, settings })
    }
}
