//! The engine that every host runs, the check of policy documents, and the glue that wasm-bindgen writes for each.

use crate::{cargo, files};
use anyhow::{Context, Result};
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

/// One module: the package, the profile that it is built with, and the name of its files.
struct Module {
    package: &'static str,
    profile: &'static str,
    name: &'static str,
}

/// Speed for what decides; size for what is loaded once, at set-up.
const MODULES: [Module; 2] = [
    Module { package: "tidegate-wasm", profile: "wasm", name: "tidegate" },
    Module { package: "tidegate-policy-wasm", profile: "wasm-small", name: "policy" },
];

/// Writes `<name>.js`, `<name>.d.ts` and `<name>_bg.raw.wasm` of each; npm/scripts/wasm.mjs shrinks the last one.
pub(crate) fn build(folder: &Path) -> Result<()> {
    MODULES.iter().try_for_each(|module| one(folder, module))
}

fn one(folder: &Path, Module { package, profile, name }: &Module) -> Result<()> {
    let module = cargo::build_cdylib(package, profile, Some("wasm32-unknown-unknown"))?;
    let mut output = Bindgen::new()
        .input_path(module.as_std_path())
        .out_name(name)
        .web(true)?
        .typescript(true)
        // The hosts hand the module over. A default path would make bundlers look for a file that they need not have.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .context("wasm-bindgen")?;
    files::write(&folder.join(format!("{name}.js")), output.js().as_bytes())?;
    files::write(&folder.join(format!("{name}.d.ts")), output.ts().unwrap_or_default().as_bytes())?;
    files::write(&folder.join(format!("{name}_bg.raw.wasm")), &output.wasm_mut().emit_wasm())
}
