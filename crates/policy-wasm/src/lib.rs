//! The check of policy documents for JavaScript: a value in, plain data out.
//!
//! It is a module of its own, loaded where documents are read: structured values cross here, at set-up and on a reload,
//! and never in a decision. So the engine's module does not grow by what reads and writes them.

#![forbid(unsafe_code)]

mod value;

use serde::Serialize;
use tidegate_policy::{Document, Plain};
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};

/// Checks a document and answers `{ rules, fallback?, problems }`. `repeated` has the path of each field that the
/// document's text gave twice, which a JavaScript object cannot show.
#[wasm_bindgen]
pub fn check(document: &JsValue, repeated: &JsValue) -> Result<JsValue, JsError> {
    let mut tree = value::tree(document);
    for path in js_sys::Array::from(repeated).iter() {
        value::repeat(&mut tree, &path);
    }
    let plain = Plain::from(Document::read(&tree));
    Ok(plain.serialize(&serde_wasm_bindgen::Serializer::new().serialize_missing_as_null(false))?)
}
