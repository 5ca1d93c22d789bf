//! The document's structure as a JSON Schema (draft 2020-12), generated from the tables that the check uses.

use crate::algorithm::{ALGORITHMS, FIRST, PER_SECOND, TIMES, numbers};
use crate::fields::MAX_FIELDS;
use crate::{cost, descriptor, document, enforcement, rule, tiers};
use serde_json::{Map, Value, json};
use tidegate_core::{Field, Kind, MAX_NAME_BYTES};

/// The schema's address.
const ID: &str = "https://unpkg.com/tidegate/dist/policy.schema.json";
/// Any character but a control character.
const CHARACTER: &str = r"[^\u0000-\u001f\u007f-\u009f]";
const DURATION: &str = r"^\d+(\.\d+)?(ms|s|m|h|d|w)$";

/// Description of a number, for editors.
fn about(name: &str) -> &'static str {
    match name {
        "rate" => "Tokens added per period.",
        "tokens_per_second" | "rps" => "Tokens added per second, instead of rate and period.",
        "period" => "Length of the period: ms, or a string such as 15m.",
        "capacity" | "burst" => "Most tokens that accumulate; default the rate.",
        "maxReserved" => "Most tokens that may be owed, if the rule reserves.",
        "start" => {
            "Offset of the window grid from 0 UTC: ms, or a string such as 8h; or \"first request\": each key's window begins at its first request. Default derived from name and key."
        }
        "shards" => "Parts that share the limit.",
        "cost_source" => "fixed, or the header or query parameter in which the client states the cost.",
        "fixed_cost" => "Tokens of every request; default 1.",
        "for" => "Length of a block: ms, or a string such as 10m.",
        "within" => "Ms, or a string such as 12h, in which denials and earlier blocks are counted; default one day.",
        _ => "Tokens if the client states nothing usable; default 1.",
    }
}

fn number(field: Field, name: &str) -> Value {
    let bound = field.bound();
    let kind = if bound.integer { "integer" } else { "number" };
    let least = if bound.above_min { "exclusiveMinimum" } else { "minimum" };
    let mut number = json!({ "type": kind, least: bound.min, "maximum": bound.max });
    if TIMES.contains(&field) {
        let mut forms = vec![number, json!({ "type": "string", "pattern": DURATION })];
        if field == Field::Start {
            forms.push(json!({ "const": FIRST }));
        }
        number = json!({ "anyOf": forms });
    }
    number["description"] = about(name).into();
    number
}

/// A config's numbers: each under one of its names; the rate with a period, or under a name that implies one.
fn config(kind: Kind, tier: bool) -> Value {
    let numbers: Vec<_> = numbers(kind, tier).collect();
    let mut properties: Map<String, Value> =
        numbers.iter().map(|(field, name)| ((*name).to_owned(), number(*field, name))).collect();
    if !tier {
        let tokens = |name| json!({ "$ref": "#/$defs/tokens", "exclusiveMinimum": 0, "description": about(name) });
        properties.insert("cost_source".into(), json!({ "$ref": "#/$defs/costSource" }));
        properties.insert("fixed_cost".into(), tokens("fixed_cost"));
        properties.insert("default_cost".into(), tokens("default_cost"));
    }
    let mut never = Vec::new();
    for (at, (field, name)) in numbers.iter().enumerate() {
        for (same, other) in &numbers[at + 1..] {
            if field == same {
                never.push(json!({ "not": { "required": [name, other] } }));
            }
        }
    }
    let mut rates = vec![json!({ "required": ["rate", "period"] })];
    rates.extend(PER_SECOND.map(|name| json!({ "required": [name], "not": { "required": ["period"] } })));
    if !tier {
        never.push(json!({
            "if": { "required": ["default_cost"] },
            "then": { "anyOf": [{ "required": ["cost_source"] }, { "required": ["fixed_cost"] }] },
        }));
    }
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "anyOf": rates,
        "allOf": never,
    })
}

fn block() -> Value {
    let length = number(Field::For, "for");
    let [after, lengths, within] = enforcement::BLOCK;
    json!({
        "type": "object",
        "properties": {
            after: { "type": "integer", "minimum": 1, "maximum": enforcement::MAX_AFTER, "description": "Denials after which a key is blocked." },
            lengths: {
                "anyOf": [length, { "type": "array", "minItems": 1, "maxItems": enforcement::MAX_LENGTHS, "items": length }],
                "description": "How long: ms, or a string such as 10m. Of several, the first block lasts for the first, and so on; the last one is repeated.",
            },
            within: number(Field::For, "within"),
        },
        "required": [after, lengths],
        "additionalProperties": false,
        "description": "Blocks a key that is denied repeatedly, for longer each time.",
    })
}

/// A rule that requires these fields, with at most `matches` conditions.
fn rule_schema(required: &[&str], matches: usize) -> Value {
    let by_algorithm: Vec<Value> = ALGORITHMS
        .iter()
        .map(|(name, _)| {
            json!({
                "if": { "properties": { "algorithm": { "const": name } } },
                "then": { "properties": {
                    "algorithm_config": { "$ref": format!("#/$defs/{name}") },
                    "tiers": { "properties": { "settings": { "additionalProperties": { "$ref": format!("#/$defs/{name}_tier") } } } },
                } },
            })
        })
        .chain([
            json!({
                "if": { "required": ["cost"] },
                "then": { "properties": { "algorithm_config": { "properties":
                    cost::ALIASES.iter().map(|name| ((*name).to_owned(), Value::Bool(false))).collect::<Map<_, _>>() } } },
            }),
            json!({
                "if": { "required": ["block"] },
                "then": { "properties": { "name": { "maxLength": enforcement::MAX_BLOCKED_NAME } } },
            }),
        ])
        .collect();
    let all = json!({
        "name": { "type": "string", "pattern": format!("^[A-Za-z0-9_.-]{{1,{MAX_NAME_BYTES}}}$"), "description": "The limit's name, under which its state is stored." },
        "limit_keys": { "type": "array", "maxItems": rule::MAX_KEYS, "uniqueItems": true, "items": { "$ref": "#/$defs/descriptor" }, "description": "Whose limit: what these hold together is the key. [] is one limit for all." },
        "algorithm": { "enum": ALGORITHMS.map(|(name, _)| name) },
        "algorithm_config": { "type": "object" },
        "match": { "type": "object", "maxProperties": matches, "propertyNames": { "$ref": "#/$defs/descriptor" }, "additionalProperties": { "type": ["string", "number", "boolean"] }, "description": "What must all be equal for the rule to apply." },
        "cost": { "$ref": "#/$defs/cost" },
        "tiers": { "$ref": "#/$defs/tiers" },
        "reserve": { "type": "boolean", "description": "Whether tokens may be owed, up to maxReserved." },
        "shadow": { "type": "boolean", "description": "Whether the rule is decided and reported, but denies no request." },
        "onStoreError": { "$ref": "#/$defs/onStoreError" },
        "block": { "$ref": "#/$defs/block" },
    });
    let properties: Map<String, Value> =
        rule::FIELDS.iter().map(|field| ((*field).to_owned(), all[*field].clone())).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "allOf": by_algorithm,
    })
}

/// The JSON Schema of a document's structure. Relations between values (unique names, a cost that the limit can grant)
/// are checked only by [`Document`](crate::Document).
#[must_use]
pub fn schema() -> Value {
    let header = format!("header:[A-Za-z0-9{}]{{1,128}}", descriptor::HEADER.replace('-', "\\-").replace('^', "\\^"));
    let query = format!("query:{CHARACTER}{{1,128}}");
    let tokens = json!({ "type": "number", "minimum": Field::Count.bound().min, "maximum": Field::Count.bound().max });
    let costs: Map<String, Value> = cost::FIELDS
        .iter()
        .map(|field| {
            (
                (*field).to_owned(),
                json!({ "$ref": if *field == "source" { "#/$defs/costSource" } else { "#/$defs/tokens" } }),
            )
        })
        .collect();
    let mut definitions = json!({
        "tokens": tokens,
        "descriptor": { "type": "string", "pattern": format!("^(ip:address|{header}|jwt:{CHARACTER}{{1,128}}|{query})$") },
        "costSource": { "type": "string", "pattern": format!("^(fixed|{header}|{query})$"), "description": about("cost_source") },
        "cost": {
            "description": "Tokens that a request takes; default 1.",
            "anyOf": [
                { "$ref": "#/$defs/tokens" },
                { "type": "object", "properties": costs, "required": ["source"], "additionalProperties": false },
            ],
        },
        "tiers": {
            "type": "object",
            "properties": {
                tiers::FIELDS[0]: { "$ref": "#/$defs/descriptor" },
                tiers::FIELDS[1]: { "type": "object", "minProperties": 1, "maxProperties": MAX_FIELDS, "propertyNames": { "not": { "const": "__proto__" } } },
            },
            "required": tiers::FIELDS,
            "additionalProperties": false,
            "description": "Settings of plans, instead of the algorithm_config.",
        },
        "onStoreError": {
            "description": "What the rule does when its store fails; default what the limiter does.",
            "anyOf": [
                { "enum": enforcement::WITHOUT_STORE },
                {
                    "type": "object",
                    "properties": { enforcement::LOCAL: { "type": "number", "exclusiveMinimum": 0, "maximum": 1 } },
                    "required": [enforcement::LOCAL],
                    "additionalProperties": false,
                },
            ],
        },
        "block": block(),
        "rule": rule_schema(&rule::FIELDS[..4], MAX_FIELDS),
        "fallback": rule_schema(&rule::FIELDS[1..4], 0),
    });
    for (name, kind) in ALGORITHMS {
        definitions[name] = config(kind, false);
        definitions[format!("{name}_tier")] = config(kind, true);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "A policy document of tidegate",
        "type": "object",
        "properties": {
            document::FIELDS[0]: { "type": "array", "minItems": 1, "maxItems": document::MAX_RULES, "items": { "$ref": "#/$defs/rule" } },
            document::FIELDS[1]: { "$ref": "#/$defs/fallback", "description": "What applies if no rule matches." },
            document::FIELDS[2]: { "type": "string" },
        },
        "required": ["rules"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}
