//! The Node.js addon, one folder per platform, named as napi names them. `@napi-rs/cli` would also generate a loader
//! and types that the package does not use; without them, one cargo command and a copy suffice.

use crate::{cargo, files};
use anyhow::{Result, bail};
use std::path::Path;

/// Rust's name of a target, and napi's.
const PLATFORMS: [(&str, &str); 8] = [
    ("x86_64-unknown-linux-gnu", "linux-x64-gnu"),
    ("x86_64-unknown-linux-musl", "linux-x64-musl"),
    ("aarch64-unknown-linux-gnu", "linux-arm64-gnu"),
    ("aarch64-unknown-linux-musl", "linux-arm64-musl"),
    ("x86_64-apple-darwin", "darwin-x64"),
    ("aarch64-apple-darwin", "darwin-arm64"),
    ("x86_64-pc-windows-msvc", "win32-x64-msvc"),
    ("aarch64-pc-windows-msvc", "win32-arm64-msvc"),
];

/// The target that cargo is configured with; default: that of this machine.
fn host() -> String {
    let (system, env) = match (std::env::consts::OS, cfg!(target_env = "musl")) {
        ("macos", _) => ("apple-darwin", ""),
        ("windows", _) => ("pc-windows-msvc", ""),
        (_, true) => ("unknown-linux", "-musl"),
        (_, false) => ("unknown-linux", "-gnu"),
    };
    format!("{}-{system}{env}", std::env::consts::ARCH)
}

/// Writes `<folder>/<platform>/tidegate.<platform>.node`.
pub(crate) fn build(folder: &Path, triple: Option<&str>) -> Result<()> {
    let target = triple.map_or_else(host, str::to_owned);
    let Some((_, platform)) = PLATFORMS.iter().find(|(name, _)| *name == target) else {
        bail!("no addon for {target}: the package runs its wasm there");
    };
    let library = cargo::build_cdylib("tidegate-node", &["--profile", "release"], triple)?;
    files::write(&folder.join(platform).join(format!("tidegate.{platform}.node")), &std::fs::read(library)?)
}
