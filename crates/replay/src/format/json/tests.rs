use super::*;
use crate::fields::Slots;
use proptest::prelude::*;
use serde_json::json;

const NAMES: [&str; 4] = ["a", "b", "A", "a.b"];
/// Texts that count as an absent field.
const NOTHING: [&str; 2] = ["", "-"];

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9u8).prop_map(Value::from),
        prop_oneof![Just("-"), Just("x"), Just("\u{e9}\"")].prop_map(Value::from),
    ];
    scalar.prop_recursive(
        3,
        12,
        3,
        |inner| prop_oneof![4 => objects(inner.clone()), 1 => prop::collection::vec(inner, 0..3).prop_map(Value::from)],
    )
}

fn objects(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let names = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
    prop::collection::vec((names, inner), 0..6).prop_map(|fields| fields.into_iter().collect())
}

/// What the path leads to in this line, as text, if it is a value that counts.
fn at(line: &Value, path: &[String]) -> Option<String> {
    let value = path.iter().try_fold(line, |value, name| value.get(name))?;
    text(value).filter(|text| !NOTHING.contains(&text.as_str()))
}

#[test]
fn a_list_of_texts_is_one_text_and_a_list_without_any_is_none() {
    assert_eq!(text(&json!(["a", "b"])), Some("a, b".to_owned()));
    for none in [json!([]), json!(["a", 1])] {
        assert_eq!(text(&none), None);
    }
}

proptest! {
    /// The reader skips all but the known paths; here each line is a tree, and every path is followed from its root.
    #[test]
    fn a_field_is_what_its_path_leads_to_or_else_what_a_search_finds(
        wanted in prop::collection::vec(prop::collection::vec(prop::sample::select(&["a", "b", "a.b", "a.a.b", "b.a"][..]), 1..3), 1..5),
        lines in prop::collection::vec(objects(values()), 1..8),
    ) {
        let mut slots = Slots::new(None);
        for names in &wanted {
            slots.stated(names.iter().map(|name| (*name).to_owned()).collect());
        }
        let wanted = Wanted::new(slots, vec![]);
        let mut splitter = Splitter::new(&wanted);
        let mut paths: Vec<Option<Path>> = vec![None; wanted.slots.len()];
        let mut fields = Fields::default();
        for line in &lines {
            fields.clear(wanted.slots.len());
            splitter.split(line.to_string().as_bytes(), &mut fields).unwrap();
            // Now the paths are known, and lead to the same without a search.
            let mut again = Fields::default();
            again.clear(wanted.slots.len());
            let pick = Pick { names: &splitter.known, fields: &mut again };
            serde_json::Deserializer::from_str(&line.to_string()).deserialize_map(pick).unwrap();
            for (slot, path) in paths.iter_mut().enumerate() {
                let mut expected = path.as_ref().and_then(|path| at(line, path));
                if expected.is_none() {
                    let object = line.as_object().unwrap();
                    if let Some((found, value)) = wanted.slots[slot].names.iter().find_map(|name| find(object, name)) {
                        expected = text(value).filter(|text| !NOTHING.contains(&text.as_str()));
                        *path = Some(found);
                    }
                }
                for fields in [&fields, &again] {
                    let got = fields.get(slot).map(|text| String::from_utf8(text.to_vec()).unwrap());
                    prop_assert_eq!(&got, &expected, "slot {} of {}", slot, line);
                }
            }
        }
    }
}
