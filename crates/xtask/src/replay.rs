//! The replay of logs as WebAssembly, with the glue of wasm-bindgen and the types of its options and report.

use crate::{cargo, files};
use anyhow::{Context, Result};
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

/// Writes `replay.js`, `replay.d.ts` and `replay_bg.raw.wasm`; npm/scripts/replay.mjs shrinks the module.
pub(crate) fn build(folder: &Path) -> Result<()> {
    let module = cargo::build_cdylib("tidegate-replay", &["--profile", "wasm"], Some("wasm32-unknown-unknown"))?;
    let mut output = Bindgen::new()
        .input_path(module.as_std_path())
        .out_name("replay")
        .web(true)?
        .typescript(true)
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .context("wasm-bindgen")?;
    files::write(&folder.join("replay.js"), output.js().as_bytes())?;
    files::write(&folder.join("replay.d.ts"), output.ts().unwrap_or_default().as_bytes())?;
    files::write(&folder.join("replay_bg.raw.wasm"), &output.wasm_mut().emit_wasm())
}
