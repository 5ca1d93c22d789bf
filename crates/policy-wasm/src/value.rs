//! Reads JavaScript values as a tree.

use js_sys::{Array, Object};
use tidegate_policy::{MAX_FIELDS, Tree};
use wasm_bindgen::{JsCast, JsValue};

/// Deepest nesting that is read; a cyclic value ends here.
const DEEPEST: usize = 32;

/// Reads the value and everything in it. A value that JSON lacks becomes `Other`.
pub(crate) fn tree(value: &JsValue) -> Tree {
    read(value, 0)
}

fn read(value: &JsValue, depth: usize) -> Tree {
    if let Some(number) = value.as_f64() {
        return Tree::Number(number);
    }
    if let Some(text) = value.as_string() {
        return Tree::Text(text);
    }
    if let Some(truth) = value.as_bool() {
        return Tree::Bool(truth);
    }
    if value.is_null() {
        return Tree::Null;
    }
    if !value.is_object() {
        let kind = value.js_typeof().as_string().unwrap_or_default();
        return Tree::Other(if kind == "undefined" { kind } else { format!("a {kind}") });
    }
    if depth == DEEPEST {
        return Tree::Other("something nested too deep".into());
    }
    if Array::is_array(value) {
        return Tree::List(Array::from(value).iter().map(|item| read(&item, depth + 1)).collect());
    }
    // Not by `instanceof`: parsers of TOML make objects without a prototype, and Jest requires JSON in another realm.
    let object: &Object = value.unchecked_ref();
    // Own fields only: fields of the prototype are not part of the document.
    let own = Object::entries(object);
    if own.length() == 0 && is_of_class(object) {
        return Tree::Other("an object without fields of its own, such as a Map or a Date; pass a plain object".into());
    }
    let entries = own.into_iter().map(|entry| {
        let pair = Array::from(&entry);
        (pair.get(0).as_string().unwrap_or_default(), read(&pair.get(1), depth + 1))
    });
    Tree::Map(entries.collect())
}

/// Whether the object's prototype has one too. In every realm `Object.prototype` has none.
fn is_of_class(object: &Object) -> bool {
    let prototype = Object::get_prototype_of(object);
    prototype.is_object() && Object::get_prototype_of(&prototype).is_object()
}

/// Repeats the field at the end of `path` (texts for fields, numbers for places in arrays).
pub(crate) fn repeat(tree: &mut Tree, path: &JsValue) {
    let path: Vec<JsValue> = Array::from(path).to_vec();
    let Some((last, before)) = path.split_last() else { return };
    let mut at = tree;
    for step in before {
        at = match at {
            Tree::List(list) => match step.as_f64().and_then(|index| list.get_mut(index as usize)) {
                Some(item) => item,
                None => return,
            },
            Tree::Map(map) if map.len() > MAX_FIELDS => return,
            Tree::Map(map) => match map.iter_mut().find(|(field, _)| Some(field) == step.as_string().as_ref()) {
                Some((_, value)) => value,
                None => return,
            },
            _ => return,
        };
    }
    if let (Tree::Map(map), Some(field)) = (at, last.as_string()) {
        // An object with more fields is already a mistake, so each search is short.
        if map.len() <= MAX_FIELDS {
            map.push((field, Tree::Null));
        }
    }
}
