//! Writes the result of a check as JavaScript values: the package's `Checked`. By hand, because serde and
//! serde-wasm-bindgen would add a tenth to the module.

use js_sys::{Array, Object};
use tidegate_core::{FIRST_REQUEST, Policy};
use tidegate_policy::{
    Block, Cost, Descriptor, Document, Enforcement, Limit, Match, OnStoreError, Problem, Problems, Rule, Tier, Tiers,
};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(extends = Object)]
    type Fields;
    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> Fields;
    #[wasm_bindgen(method, structural, indexing_setter)]
    fn set(this: &Fields, name: &str, value: &JsValue);
}

impl Fields {
    fn with(self, name: &str, value: impl Into<JsValue>) -> Fields {
        self.set(name, &value.into());
        self
    }

    /// With the field, where there is a value.
    fn with_some(self, name: &str, value: Option<impl Into<JsValue>>) -> Fields {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

fn list<T, W: Into<JsValue>>(items: &[T], write: impl Fn(&T) -> W) -> Array {
    items.iter().map(|item| write(item).into()).collect()
}

pub(crate) fn checked(result: Result<Document, Problems>) -> JsValue {
    let (Document { rules, fallback }, problems) = match result {
        Ok(document) => (document, Vec::new()),
        Err(Problems(problems)) => (Document::default(), problems),
    };
    Fields::new()
        .with("rules", list(&rules, rule))
        .with_some("fallback", fallback.as_ref().map(rule))
        .with("problems", list(&problems, problem))
        .into()
}

fn problem(problem: &Problem) -> Fields {
    let Problem { rule, name, path, expected, got, hint, message } = problem;
    Fields::new()
        .with_some("rule", rule.map(|index| index as f64))
        .with_some("name", name.as_ref())
        .with("path", path)
        .with("expected", expected)
        .with("got", got)
        .with_some("hint", hint.as_ref())
        .with("message", message)
}

fn rule(rule: &Rule) -> Fields {
    let Rule { name, keys, matches, cost, reserve, limit, tiers, enforcement } = rule;
    let Enforcement { shadow, on_store_error, block } = enforcement;
    Fields::new()
        .with("name", name)
        .with("keys", list(keys, descriptor))
        .with("matches", list(matches, condition))
        .with("cost", self::cost(cost))
        .with("reserve", *reserve)
        .with("limit", self::limit(limit))
        .with_some("tiers", tiers.as_ref().map(self::tiers))
        .with("shadow", *shadow)
        .with_some("onStoreError", on_store_error.map(self::on_store_error))
        .with_some("block", block.as_ref().map(self::block))
}

fn condition(Match { at, equals }: &Match) -> Fields {
    Fields::new().with("at", descriptor(at)).with("equals", equals)
}

fn descriptor(Descriptor { source, name }: &Descriptor) -> Fields {
    Fields::new().with("source", source.as_str()).with("name", name)
}

fn cost(Cost { stated, default, min, max }: &Cost) -> Fields {
    Fields::new()
        .with_some("stated", stated.as_ref().map(descriptor))
        .with("default", *default)
        .with("min", *min)
        .with_some("max", *max)
}

fn limit(Limit { policy, grantable }: &Limit) -> Fields {
    Fields::new().with("config", config(policy)).with("grantable", *grantable)
}

/// The package's `Config`.
fn config(policy: &Policy) -> Fields {
    let start = |ms: f64| if ms == FIRST_REQUEST { JsValue::from_str("first request") } else { ms.into() };
    Fields::new()
        .with("kind", policy.kind().as_str())
        .with("rate", policy.rate())
        .with("period", policy.period())
        .with("capacity", policy.capacity())
        .with_some("maxReserved", Some(policy.max_reserved()).filter(|most| most.is_finite()))
        .with_some("start", policy.start().map(start))
        .with("shards", policy.shards())
}

fn tiers(Tiers { by, settings }: &Tiers) -> Fields {
    let tier = |Tier { name, limit }: &Tier| Fields::new().with("name", name).with("limit", self::limit(limit));
    Fields::new().with("by", descriptor(by)).with("settings", list(settings, tier))
}

fn on_store_error(setting: OnStoreError) -> JsValue {
    match setting {
        OnStoreError::Deny => "deny".into(),
        OnStoreError::Allow => "allow".into(),
        OnStoreError::Local(fraction) => Fields::new().with("local", fraction).into(),
    }
}

fn block(Block { after, lengths, within }: &Block) -> Fields {
    let lengths = list(lengths, |ms| *ms);
    Fields::new().with("after", *after).with("for", lengths).with("within", *within)
}
