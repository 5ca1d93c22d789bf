//! The check of policy documents for JavaScript: a value in, plain data out.
//!
//! A module of its own, loaded only where documents are read, so that the engine's module does not contain the code that
//! converts structured values.

#![forbid(unsafe_code)]

mod value;

use tidegate_policy::{Checked, Document};
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};

/// Half the code of the standard library's allocator.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// Checks a document and returns `{ rules, fallback?, problems }`. `repeated` has the path of each field that the
/// document's text repeats, which a JavaScript object cannot show.
///
/// # Errors
/// If JavaScript cannot make the result.
#[wasm_bindgen]
pub fn check(document: &JsValue, repeated: &JsValue) -> Result<JsValue, JsError> {
    let mut tree = value::tree(document);
    for path in js_sys::Array::from(repeated).iter() {
        value::repeat(&mut tree, &path);
    }
    let checked = Checked::from(Document::read(&tree));
    Ok(serde_wasm_bindgen::to_value(&checked)?)
}
