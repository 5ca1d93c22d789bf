//! Writes the shared vectors to `tests/vectors/`: `cargo run -p tidegate-oracle --bin vectors`.

use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    for (name, text) in tidegate_oracle::vectors::files() {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
