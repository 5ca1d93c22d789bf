//! The check ends on any tree, and every document that it accepts can be used.

use proptest::prelude::*;
use tidegate_fuzz::is_sound;
use tidegate_policy::{Checked, Document, Tree};

const FIELDS: [&str; 25] = [
    "rules",
    "fallback_limit",
    "name",
    "limit_keys",
    "algorithm",
    "algorithm_config",
    "match",
    "cost",
    "tiers",
    "reserve",
    "rate",
    "rps",
    "period",
    "capacity",
    "burst",
    "maxReserved",
    "start",
    "shards",
    "cost_source",
    "source",
    "default",
    "min",
    "max",
    "by",
    "settings",
];

fn leaf() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any::<f64>().prop_map(Tree::Number),
        (0..20u32).prop_map(|n| Tree::Number(f64::from(n))),
        ".{0,12}".prop_map(Tree::Text),
        prop::sample::select(vec![
            "token_bucket",
            "fixed_window",
            "jwt:plan",
            "ip:address",
            "header:X-A",
            "fixed",
            "a"
        ])
        .prop_map(|text| Tree::Text(text.into())),
        Just(Tree::Other("a function".into())),
    ]
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let field = prop_oneof![
        8 => prop::sample::select(FIELDS.to_vec()).prop_map(str::to_owned),
        1 => ".{0,6}",
        1 => Just("__proto__".to_owned()),
    ];
    leaf().prop_recursive(6, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::List),
            prop::collection::vec((field.clone(), inner), 0..8).prop_map(Tree::Map),
        ]
    })
}

fn text(value: &str) -> Tree {
    Tree::Text(value.into())
}

/// A valid rule, except for `tree` in place of one field.
fn rule_with(field: &str, tree: Tree) -> Tree {
    let config = Tree::Map(vec![("rps".into(), Tree::Number(10.0)), ("burst".into(), Tree::Number(20.0))]);
    let mut rule = vec![
        ("name".into(), text("api")),
        ("limit_keys".into(), Tree::List(vec![text("ip:address")])),
        ("algorithm".into(), text("token_bucket")),
        ("algorithm_config".into(), config),
    ];
    rule.retain(|(name, _): &(String, Tree)| name != field);
    rule.push((field.into(), tree));
    Tree::Map(vec![("rules".into(), Tree::List(vec![Tree::Map(rule)]))])
}

fn judge(tree: &Tree) {
    let checked = Document::read(tree);
    match &checked {
        Ok(document) => is_sound(document),
        Err(problems) => assert!(!problems.0.is_empty()),
    }
    let _ = Checked::from(checked);
}

proptest! {
    #[test]
    fn any_tree_is_accepted_and_usable_or_rejected_with_messages(tree in any_tree()) {
        judge(&tree);
    }

    #[test]
    fn any_tree_in_place_of_a_field_is_accepted_and_usable_or_rejected(field in prop::sample::select(FIELDS[2..10].to_vec()), tree in any_tree()) {
        judge(&rule_with(field, tree));
    }

    #[test]
    fn any_numbers_in_a_config_are_accepted_and_usable_or_rejected(
        numbers in prop::collection::vec(
            (prop::sample::select(FIELDS[10..18].to_vec()), prop_oneof![0.0..1e13f64, 0.0..100.0f64, any::<f64>()]), 1..6),
        cost in prop_oneof![0.0..100.0f64, any::<f64>()],
        reserve in any::<bool>(),
    ) {
        let config = numbers.into_iter().map(|(field, number)| (field.to_owned(), Tree::Number(number.floor()))).collect();
        let Tree::Map(mut document) = rule_with("algorithm_config", Tree::Map(config)) else { return Ok(()) };
        if let Some((_, Tree::List(rules))) = document.first_mut()
            && let Some(Tree::Map(rule)) = rules.first_mut()
        {
            rule.push(("cost".into(), Tree::Number(cost)));
            rule.push(("reserve".into(), Tree::Bool(reserve)));
        }
        judge(&Tree::Map(document));
    }
}
