//! Writes the shared vectors to `tests/vectors/`, or with `--check` fails where a committed file is stale.
//!
//! ```text
//! cargo run -p tidegate-oracle --bin vectors [-- --check]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let check = std::env::args().skip(1).any(|arg| arg == "--check");
    let mut stale = 0;
    for (name, text) in tidegate_oracle::vectors::files() {
        let path = folder.join(name);
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                eprintln!("{name} is stale: run `cargo run -p tidegate-oracle --bin vectors`");
                stale += 1;
            }
        } else {
            std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    if stale == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
