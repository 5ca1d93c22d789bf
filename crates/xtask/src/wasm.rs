//! The WebAssembly modules with the glue of wasm-bindgen: the engine, twice from the same crates (for speed and for
//! size), and the check of policy documents.

use crate::{cargo, files};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use wasm_bindgen_cli_support::{Bindgen, Output};

const TARGET: &str = "wasm32-unknown-unknown";
/// The profile for size. By a setting, since macros are compiled again for each profile that has a name.
const SIZE: &str = "profile.wasm.opt-level=\"z\"";
/// That of the replay, which is not slower than with 3, and is smaller and sooner compiled.
const REPLAY: &str = "profile.wasm.opt-level=2";
/// A name, and the options of cargo.
const ENGINES: [(&str, &[&str]); 2] = [
    ("speed", &["--profile", "wasm"]),
    ("small", &["--profile", "wasm", "--config", SIZE, "--no-default-features", "--features", "small"]),
];
/// Shadows the classes of the host, which not all hosts have.
const GLUE_TEXT: &str = "import { TextDecoder, TextEncoder } from \"../glue-text.ts\";\n";

/// When wasm-bindgen replaces its view of the memory, and when ours does: the `detached` of a host may be wrong, as that of
/// SES on Node.js 20. Memory that has grown has another buffer.
const DETACHED: &str = "cachedDataViewMemory0.buffer.detached === true || (cachedDataViewMemory0.buffer.detached === undefined && cachedDataViewMemory0.buffer !== wasm.memory.buffer)";
const GROWN: &str = "cachedDataViewMemory0.buffer !== wasm.memory.buffer";

/// Writes `speed.raw.wasm`, `small.raw.wasm` and the types of their exports, `engine.d.ts`; and of the check
/// `policy_bg.raw.wasm`, `policy.js` and `policy.d.ts`. npm/scripts/wasm.mjs shrinks the modules.
pub(crate) fn build(folder: &Path) -> Result<()> {
    for (name, options) in ENGINES {
        let mut output = bind("tidegate-wasm", options, "engine")?;
        write_types(folder, "engine", &output)?;
        write_module(folder, &format!("{name}.raw.wasm"), &mut output)?;
    }
    let mut output = bind("tidegate-policy-wasm", &["--profile", "wasm", "--config", SIZE], "policy")?;
    write_glue(folder, "policy", GLUE_TEXT, &mut output)?;
    write_module(folder, "policy_bg.raw.wasm", &mut output)
}

/// Writes `replay.js`, `replay.d.ts` and `replay_bg.wasm`: the replay of logs. wasm-opt makes it no faster, and compressed
/// hardly smaller.
pub(crate) fn replay(folder: &Path) -> Result<()> {
    let mut output = bind("tidegate-replay", &["--profile", "wasm", "--config", REPLAY], "replay")?;
    write_glue(folder, "replay", "", &mut output)?;
    write_module(folder, "replay_bg.wasm", &mut output)
}

fn bind(package: &str, options: &[&str], name: &str) -> Result<Output> {
    let module = cargo::build_cdylib(package, options, TARGET, &[])?;
    Bindgen::new()
        .input_path(module.as_std_path())
        .out_name(name)
        .web(true)?
        .typescript(true)
        // Hosts pass the module. With a default path, bundlers would search for a file that may not exist.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .context("wasm-bindgen")
}

fn write_glue(folder: &Path, name: &str, head: &str, output: &mut Output) -> Result<()> {
    let [glue, types] = [output.js(), output.ts().unwrap_or_default()].map(without_underscores);
    ensure!(!glue.contains("DataView") || glue.contains(DETACHED), "wasm-bindgen writes other glue than it did");
    let glue = glue.replace(DETACHED, GROWN);
    files::write(&folder.join(format!("{name}.js")), format!("{head}{glue}").as_bytes())?;
    files::write(&folder.join(format!("{name}.d.ts")), types.as_bytes())?;
    let module = output.wasm_mut();
    module.imports.iter_mut().for_each(|import| import.name = without_underscores(&import.name));
    module.exports.iter_mut().for_each(|export| export.name = without_underscores(&export.name));
    Ok(())
}

/// Of the names by which module and glue find each other. Minifiers of apps shorten names that begin with an underscore,
/// which they cannot in the module.
fn without_underscores(text: &str) -> String {
    text.replace("__wb", "wb").replace("__externref", "externref")
}

fn write_types(folder: &Path, name: &str, output: &Output) -> Result<()> {
    files::write(&folder.join(format!("{name}.d.ts")), output.ts().unwrap_or_default().as_bytes())
}

fn write_module(folder: &Path, file: &str, output: &mut Output) -> Result<()> {
    files::write(&folder.join(file), &output.wasm_mut().emit_wasm())
}
