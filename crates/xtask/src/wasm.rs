//! The engine as WebAssembly, twice from the same crates: compiled for speed, and for size. Both export the same calls,
//! which pass nothing but numbers, and so need no glue. And the check of policy documents, with the glue of wasm-bindgen.

use crate::{cargo, files};
use anyhow::{Context, Result};
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

const TARGET: Option<&str> = Some("wasm32-unknown-unknown");
/// A name, and what cargo is told.
const ENGINES: [(&str, &[&str]); 2] = [
    ("speed", &["--profile", "wasm"]),
    ("small", &["--profile", "wasm-small", "--no-default-features", "--features", "small"]),
];

/// Writes `speed.raw.wasm`, `small.raw.wasm`, and of the check `policy.js`, `policy.d.ts` and `policy_bg.raw.wasm`;
/// npm/scripts/wasm.mjs shrinks the modules.
pub(crate) fn build(folder: &Path) -> Result<()> {
    for (name, options) in ENGINES {
        let module = cargo::build_cdylib("tidegate-wasm", options, TARGET)?;
        files::write(&folder.join(format!("{name}.raw.wasm")), &std::fs::read(module)?)?;
    }
    policy(folder)
}

fn policy(folder: &Path) -> Result<()> {
    let module = cargo::build_cdylib("tidegate-policy-wasm", &["--profile", "wasm-small"], TARGET)?;
    let mut output = Bindgen::new()
        .input_path(module.as_std_path())
        .out_name("policy")
        .web(true)?
        .typescript(true)
        // The hosts hand the module over. A default path would make bundlers look for a file that they need not have.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .context("wasm-bindgen")?;
    files::write(&folder.join("policy.js"), output.js().as_bytes())?;
    files::write(&folder.join("policy.d.ts"), output.ts().unwrap_or_default().as_bytes())?;
    files::write(&folder.join("policy_bg.raw.wasm"), &output.wasm_mut().emit_wasm())
}
