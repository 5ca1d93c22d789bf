//! Runs cargo for one package and returns the path of the library.

use anyhow::{Context, Result, bail};
use cargo_metadata::camino::Utf8PathBuf;
use cargo_metadata::{Message, MetadataCommand};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) fn workspace_root() -> Result<PathBuf> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
    Ok(metadata.workspace_root.into_std_path_buf())
}

pub(crate) fn command() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What the program prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// `RUSTFLAGS`, and that messages of panics name a dependency's file without this machine's folders: the same sources are
/// then the same bytes on every machine.
fn without_own_paths() -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("the folder of cargo")?;
    let remap = format!("--remap-path-prefix={}=crates", home.join("registry").join("src").display());
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags: Vec<&str> = given.split_whitespace().chain([remap.as_str()]).collect();
    Ok(flags.join("\u{1f}"))
}

/// Builds `package` with these variables of the environment, and returns its dynamic library. Messages of cargo go to
/// stderr.
///
/// With `rustc --crate-type`, because cargo passes no `-C lto` for a package that is an rlib too.
pub(crate) fn build_cdylib(
    package: &str,
    options: &[&str],
    triple: &str,
    variables: &[(&str, &str)],
) -> Result<Utf8PathBuf> {
    let mut cargo = command();
    cargo.args(["rustc", "--lib", "--crate-type", "cdylib", "--package", package]).args(options);
    cargo.args(["--target", triple, "--message-format", "json-render-diagnostics"]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", without_own_paths()?);
    cargo.envs(variables.iter().copied());
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cargo build")?;
    let stdout = child.stdout.take().context("cargo's output")?;
    let mut library = None;
    for message in Message::parse_stream(BufReader::new(stdout)) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.target.name.replace('-', "_") == package.replace('-', "_")
            && artifact.target.is_cdylib()
        {
            let is_library = |path: &Utf8PathBuf| matches!(path.extension(), Some("wasm" | "so" | "dylib" | "dll"));
            library = artifact.filenames.into_iter().find(is_library);
        }
    }
    if !child.wait()?.success() {
        bail!("cargo could not build {package}");
    }
    library
        .with_context(|| format!("{package} built no dynamic library: is `crate-type` \"cdylib\" in its Cargo.toml?"))
}
