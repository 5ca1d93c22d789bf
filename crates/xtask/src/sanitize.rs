//! AddressSanitizer on the fuzz targets and the addon, ThreadSanitizer on the threads of the shared table.
//!
//! With the stable toolchain, whose unstable flags `RUSTC_BOOTSTRAP` unlocks. ThreadSanitizer needs a standard library
//! that it instruments too: `rustup component add rust-src`. The C code of LMDB is not instrumented.

use crate::cargo::{build_cdylib, command, output, workspace_root};
use crate::fuzz;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let root = workspace_root()?;
    match words.next().as_deref() {
        None => {
            fuzz_targets(&root)?;
            addon(&root)?;
            threads(&root)
        }
        Some("fuzz") => fuzz_targets(&root),
        Some("addon") => addon(&root),
        Some("threads") => threads(&root),
        Some(other) => bail!("sanitize runs fuzz, addon or threads, not {other}"),
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    println!("> {command:?}");
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?}: {status}") }
}

/// Each target on its kept inputs, and 5 s beyond.
fn fuzz_targets(root: &Path) -> Result<()> {
    fuzz::run_all(root, &fuzz::Run { seconds: 5, seed: 1, sanitizer: Some("address"), ..fuzz::Run::default() })
}

/// Programs of tests/threads on an instrumented addon, which is in a copy of the package.
fn addon(root: &Path) -> Result<()> {
    let host = fuzz::host()?;
    let flags = [("RUSTC_BOOTSTRAP", "1"), ("CARGO_ENCODED_RUSTFLAGS", "-Zsanitizer=address")];
    let library = build_cdylib("tidegate-node", &["--target-dir", "target/sanitize/address"], &host, &flags)?;
    let place = root.join("target/sanitize/addon");
    let _ = fs::remove_dir_all(&place);
    let package = place.join("tidegate");
    fs::create_dir_all(&package)?;
    let built = root.join("npm/tidegate/dist");
    succeed(Command::new("cp").arg("-r").args([&built, &package])).context("run npm run build before")?;
    fs::copy(root.join("npm/tidegate/package.json"), package.join("package.json"))?;
    let platform = output(Command::new("node").args([
        "-p",
        "process.report.getReport().header.glibcVersionRuntime ? process.platform + '-' + process.arch + '-gnu' : ''",
    ]))?;
    if platform.is_empty() {
        bail!("the addon is sanitized on Linux with glibc only");
    }
    let scope = place.join("node_modules/@tidegate").join(&platform);
    fs::create_dir_all(&scope)?;
    fs::copy(root.join("npm").join(&platform).join("package.json"), scope.join("package.json"))?;
    fs::copy(library, scope.join(format!("tidegate.{platform}.node")))?;
    // The library of the sanitizer's calls has to be the first that the process loads.
    let preloaded = output(Command::new("cc").arg("-print-file-name=libasan.so"))?;
    for (program, more) in [("copies.mjs", package.to_string_lossy().into_owned()), ("limits.mjs", String::new())] {
        let state = place.join(format!("{program}.state"));
        let mut node = Command::new("node");
        node.current_dir(root).env("LD_PRELOAD", &preloaded);
        // What Node.js itself never frees.
        node.env("ASAN_OPTIONS", "detect_leaks=0").arg("--expose-gc");
        node.arg(root.join("tests/threads").join(program)).arg(&package);
        node.args(Some(more).filter(|more| !more.is_empty())).arg(state);
        succeed(node.args((program == "limits.mjs").then_some("1000")))?;
        println!();
    }
    Ok(())
}

fn threads(root: &Path) -> Result<()> {
    let host = fuzz::host()?;
    let mut cargo = command();
    cargo.current_dir(root).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=thread");
    cargo.args(["test", "-Zbuild-std", "--package", "tidegate-table", "--test", "shared"]);
    succeed(cargo.args(["--target", &host, "--target-dir", "target/sanitize/thread"]))
        .context("a race; or no sources of the standard library: rustup component add rust-src")
}
