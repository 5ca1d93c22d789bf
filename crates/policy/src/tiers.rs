//! Settings for each plan, in place of the rule's own `algorithm_config`.

use crate::algorithm;
use crate::cost::{Cost, grantable};
use crate::descriptor::Descriptor;
use crate::fields::Fields;
use crate::problem::Report;
use crate::tree::{Tree, quoted};
use tidegate_core::{Kind, Policy, Shown};

/// Policies by the text at one place of the request. They share the rule's state: whoever changes plans keeps what is owed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiers {
    /// Where the plan is told.
    pub by: Descriptor,
    /// Each plan's policy; any other has the rule's.
    pub settings: Vec<(String, Policy)>,
}

/// The fields of `tiers`.
pub(crate) const FIELDS: [&str; 2] = ["by", "settings"];

impl Tiers {
    /// What `tiers` says; `rule` is the rule's own policy, where that has no mistake.
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
            report.say("tiers.settings", expected.into(), "none".into(), None);
        }
        let mut settings = Vec::new();
        for (name, tier) in named.entries() {
            let path = named.at(name);
            if name == "__proto__" {
                report.say(&path, "another name: readers of JSON lose this one".into(), quoted(name), None);
                continue;
            }
            let what = "a tier (`start` and `shards` are the rule's, since they say where the state is)";
            let Some(numbers) = Fields::read(Some(tier), &path, &algorithm::names(kind, true), what, report) else {
                continue;
            };
            let Some(policy) = algorithm::policy(&numbers, kind, rule, report) else { continue };
            let most = grantable(&policy, reserve);
            if most < cost.default {
                let expected = format!("a limit that can grant the rule's cost, {}", Shown(cost.default));
                report.say(&path, expected, format!("at most {}", Shown(most)), None);
            }
            settings.push((name.to_owned(), policy));
        }
        Some(Tiers { by: by?, settings })
    }
}
