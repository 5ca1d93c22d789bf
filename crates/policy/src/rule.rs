//! One rule: the requests it applies to, the key, the cost and the limit.

use crate::algorithm;
use crate::cost::{Cost, config_fields};
use crate::descriptor::Descriptor;
use crate::enforcement::Enforcement;
use crate::fields::Fields;
use crate::limit::Limit;
use crate::problem::{Part, Report};
use crate::tiers::Tiers;
use crate::tree::Tree;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use tidegate_core::{Kind, MAX_NAME_BYTES, NAME_EXPECTS, Policy, is_name};

/// A valid rule. It is serialized with the fields of its `enforcement` among its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The limit's name.
    pub name: String,
    /// The parts of the key; none for one limit that all requests share.
    pub keys: Vec<Descriptor>,
    /// Conditions that must all hold for the rule to apply.
    pub matches: Vec<Match>,
    /// Tokens that a request takes.
    pub cost: Cost,
    /// Whether a request may reserve tokens, up to the policy's `max_reserved`.
    pub reserve: bool,
    /// The limit.
    pub limit: Limit,
    /// The limits of plans.
    pub tiers: Option<Tiers>,
    /// How it is enforced.
    pub enforcement: Enforcement,
}

/// Not by `flatten`, which makes a map of the fields: the WebAssembly of the check would be 2 % larger.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Rule { name, keys, matches, cost, reserve, limit, tiers, enforcement } = self;
        let Enforcement { shadow, on_store_error, block } = enforcement;
        let optional = u8::from(tiers.is_some()) + u8::from(on_store_error.is_some()) + u8::from(block.is_some());
        let mut fields = serializer.serialize_struct("Rule", 7 + usize::from(optional))?;
        fields.serialize_field("name", name)?;
        fields.serialize_field("keys", keys)?;
        fields.serialize_field("matches", matches)?;
        fields.serialize_field("cost", cost)?;
        fields.serialize_field("reserve", reserve)?;
        fields.serialize_field("limit", limit)?;
        if tiers.is_some() {
            fields.serialize_field("tiers", tiers)?;
        }
        fields.serialize_field("shadow", shadow)?;
        if on_store_error.is_some() {
            fields.serialize_field("onStoreError", on_store_error)?;
        }
        if block.is_some() {
            fields.serialize_field("block", block)?;
        }
        fields.end()
    }
}

/// A condition on the text at one place of the request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Match {
    /// The place.
    pub at: Descriptor,
    /// The text that the place must hold.
    pub equals: String,
}

/// The first four are required; a fallback may lack the name.
pub(crate) const FIELDS: [&str; 11] = [
    "name",
    "limit_keys",
    "algorithm",
    "algorithm_config",
    "match",
    "cost",
    "tiers",
    "reserve",
    "shadow",
    "onStoreError",
    "block",
];
/// The name that a fallback without one has.
pub(crate) const FALLBACK: &str = "fallback_limit";
/// The most parts of a key.
pub(crate) const MAX_KEYS: usize = 8;
/// The end of the sentence "`match` must be …".
pub(crate) const MATCH: &str = "an object of strings, numbers or booleans by place: {\"jwt:plan\": \"pro\"}";

impl Rule {
    /// The policy of a plan, or the rule's own if there is no such tier.
    #[must_use]
    pub fn policy_of(&self, tier: Option<&str>) -> &Policy {
        let settings = self.tiers.iter().flat_map(|tiers| &tiers.settings);
        let found = settings.into_iter().find(|setting| Some(setting.name.as_str()) == tier);
        &found.map_or(&self.limit, |setting| &setting.limit).policy
    }

    /// Reads a rule; `None` if it has mistakes, which are reported.
    pub(crate) fn read(tree: &Tree, report: &mut Report<'_>) -> Option<Rule> {
        let fallback = matches!(report.part, Part::Fallback);
        if let (Tree::Map(map), Part::Rule { name, .. }) = (tree, &mut report.part) {
            *name = map.iter().find_map(|(field, value)| match value {
                // Every problem repeats the name, so a name that is too long is cut.
                Tree::Text(text) if field == "name" => Some(text.chars().take(MAX_NAME_BYTES + 1).collect()),
                _ => None,
            });
        }
        let fields = Fields::read(Some(tree), "", &FIELDS, "a rule", report)?;
        let name = match fields.get("name") {
            None if fallback => Some(FALLBACK.to_owned()),
            given => name(given, report),
        };
        let keys = keys(fields.get("limit_keys"), report);
        let matches = fields.get("match").map_or_else(Vec::new, |tree| matches(tree, report));
        let reserve = fields.flag("reserve", report);
        let enforcement = Enforcement::read(&fields, name.as_deref(), report);
        let kind = algorithm::kind(fields.get("algorithm"), report);
        // With an unknown algorithm the config is still checked, as the kind that has every field.
        let assumed = kind.unwrap_or(Kind::FixedWindow);
        let (known, what) = (config_fields(assumed), "an algorithm_config");
        let config = Fields::read(fields.get("algorithm_config"), "algorithm_config", &known, what, report);
        let policy = config.as_ref().and_then(|config| algorithm::policy(config, assumed, None, report));
        let limit = policy.map(|policy| Limit::new(policy, reserve));
        let cost = Cost::read(fields.get("cost"), config.as_ref(), limit.as_ref(), report);
        let tiers = fields.get("tiers");
        let tiers = tiers.and_then(|tree| Tiers::read(tree, (assumed, policy.as_ref()), (&cost, reserve), report));
        Some(Rule { name: name?, keys, matches, cost, reserve, limit: limit?, tiers, enforcement })
    }
}

fn name(tree: Option<&Tree>, report: &mut Report<'_>) -> Option<String> {
    match tree {
        Some(Tree::Text(text)) if is_name(text) => Some(text.clone()),
        other => report.refuse("name", NAME_EXPECTS, other),
    }
}

fn keys(tree: Option<&Tree>, report: &mut Report<'_>) -> Vec<Descriptor> {
    let expected = format!("an array of 0 to {MAX_KEYS} strings such as \"header:x-api-key\"; [] is one limit for all");
    let mut found = Vec::new();
    match tree {
        Some(Tree::List(list)) if list.len() <= MAX_KEYS => {
            for (at, item) in list.iter().enumerate() {
                let path = format!("limit_keys[{at}]");
                let Some(key) = Descriptor::read(Some(item), &path, report) else { continue };
                if found.contains(&key) {
                    report.wrong(&path, "different from those before it", Some(item));
                }
                found.push(key);
            }
        }
        Some(Tree::List(list)) => report.add("limit_keys", expected, format!("{} of them", list.len()), None),
        other => report.wrong("limit_keys", expected, other),
    }
    found
}

fn matches(tree: &Tree, report: &mut Report<'_>) -> Vec<Match> {
    let Some(fields) = Fields::open(Some(tree), "match", MATCH, report) else { return Vec::new() };
    let mut found = Vec::new();
    for (place, value) in fields.entries() {
        let path = fields.at(place);
        let place = Descriptor::read(Some(&Tree::Text(place.into())), &path, report);
        match (place, value.text()) {
            (Some(place), Some(text)) => found.push(Match { at: place, equals: text }),
            (_, Some(_)) => {}
            (_, None) => report.wrong(&path, "a string, a finite number, true or false", Some(value)),
        }
    }
    found
}
