//! Numbers as texts, in JavaScript's form. A JavaScript host converts them itself, which keeps the tables for that out of
//! the module.

/// The number as JavaScript writes it.
#[cfg(not(all(feature = "js", target_family = "wasm")))]
pub(crate) fn shown(number: f64) -> String {
    tidegate_core::JsNumber(number).to_string()
}

/// The number of a string of digits, with or without a point.
#[cfg(not(all(feature = "js", target_family = "wasm")))]
pub(crate) fn parsed(digits: &str) -> Option<f64> {
    digits.parse().ok()
}

#[cfg(all(feature = "js", target_family = "wasm"))]
#[wasm_bindgen::prelude::wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = String)]
    pub(crate) fn shown(number: f64) -> String;
    #[wasm_bindgen(js_name = Number)]
    fn number(digits: &str) -> f64;
}

#[cfg(all(feature = "js", target_family = "wasm"))]
pub(crate) fn parsed(digits: &str) -> Option<f64> {
    Some(number(digits))
}
