//! The one wasm that every host without the addon runs, and the glue that wasm-bindgen writes for it.

use crate::{cargo, files};
use anyhow::{Context, Result};
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

/// Writes `tidegate.js`, `tidegate.d.ts` and `tidegate_bg.raw.wasm`; npm/scripts/wasm.mjs shrinks the last one.
pub(crate) fn build(folder: &Path) -> Result<()> {
    let module = cargo::build_cdylib("tidegate-wasm", "wasm", Some("wasm32-unknown-unknown"))?;
    let mut output = Bindgen::new()
        .input_path(module.as_std_path())
        .out_name("tidegate")
        .web(true)?
        .typescript(true)
        // The hosts hand the module over. A default path would make bundlers look for a file that they need not have.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .context("wasm-bindgen")?;
    files::write(&folder.join("tidegate.js"), output.js().as_bytes())?;
    files::write(&folder.join("tidegate.d.ts"), output.ts().unwrap_or_default().as_bytes())?;
    files::write(&folder.join("tidegate_bg.raw.wasm"), &output.wasm_mut().emit_wasm())
}
