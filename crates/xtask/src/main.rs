//! Builds and generates what cargo alone cannot.
//!
//! Every task can be repeated: cargo builds only changes, and unchanged files are not rewritten.

mod bounds;
#[cfg(feature = "modules")]
mod cargo;
mod files;
#[cfg(feature = "modules")]
mod fuzz;
#[cfg(feature = "modules")]
mod sanitize;
#[cfg(feature = "modules")]
mod wasm;
mod wire;

use anyhow::{Result, bail};
use std::path::Path;
#[cfg(feature = "modules")]
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p tidegate-xtask -- <task>
  wasm [folder]      the modules with their glue, and all that `bounds` writes
  replay [folder]    the replay of logs: its module, glue and types
  bounds [folder]    bounds.ts, wire.ts and policy.schema.json
  fuzz [target …] [--seconds n] [--seed n] [--keep]   every target of tests/fuzz (or these), 10 s each
  sanitize [fuzz|addon|threads]   memory errors and races; all three by default";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "modules"))]
fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [task, folder] if task == "bounds" => tables(Path::new(folder)),
        _ => bail!("built without the feature `modules`, which {words:?} needs\n{USAGE}"),
    }
}

#[cfg(feature = "modules")]
fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    match task.as_str() {
        "fuzz" => return fuzz::run(words),
        "sanitize" => return sanitize::run(words),
        _ => {}
    }
    let folder = words.next();
    if let Some(flag) = folder.as_ref().filter(|word| word.starts_with('-')) {
        bail!("unknown option {flag}\n{USAGE}");
    }
    let folder = |default: &str| match folder {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => cargo::workspace_root().map(|root| root.join(default)),
    };
    match task.as_str() {
        "wasm" => {
            let folder = folder("npm/tidegate/src/engine/generated")?;
            wasm::build(&folder)?;
            tables(&folder)
        }
        "replay" => wasm::replay(&folder("npm/tidegate-replay/src/generated")?),
        "bounds" => tables(&folder("npm/tidegate/src/engine/generated")?),
        "" => bail!(USAGE),
        other => bail!("unknown task {other}\n{USAGE}"),
    }
}

/// Writes the tables of the crates that TypeScript reads.
fn tables(folder: &Path) -> Result<()> {
    bounds::write(folder)?;
    wire::write(folder)?;
    #[cfg(feature = "modules")]
    files::write(&folder.join("policy.schema.json"), format!("{:#}\n", tidegate_policy::schema()).as_bytes())?;
    Ok(())
}
