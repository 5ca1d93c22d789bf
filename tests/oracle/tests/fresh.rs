//! The vectors that are committed are the ones that the oracles write.

#[test]
fn the_committed_vectors_are_fresh() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut written = std::collections::BTreeSet::new();
    for (name, text) in tidegate_oracle::vectors::files() {
        let committed = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(committed == text, "{name} is stale: run `cargo run -p tidegate-oracle --bin vectors`");
        written.insert(name.to_owned());
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".json") || written.contains(&name), "{name} is written by nobody");
    }
}
