//! `PROOFS.md` matches the code.

use std::fs;
use std::path::Path;

fn all_sources(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| if path.is_dir() { all_sources(&path) } else { fs::read_to_string(path).unwrap() }).collect()
}

#[test]
fn every_quote_in_the_proofs_is_in_its_file_and_every_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proofs = fs::read_to_string(root.join("PROOFS.md")).unwrap();
    let sources = all_sources(&root.join("src")) + &all_sources(&root.join("tests"));
    let (mut quotes, mut tests) = (0, 0);
    for line in proofs.lines() {
        if let Some((quote, file)) = line.strip_prefix("* `").and_then(|rest| rest.split_once("` in `")) {
            let file = file.trim_end_matches('`');
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let source = flat(&fs::read_to_string(root.join(file)).unwrap());
            assert!(source.contains(quote), "{file} has no {quote}");
            quotes += 1;
        }
        for name in line.strip_prefix("* tested by `").into_iter().flat_map(|rest| rest.split('`').step_by(2)) {
            assert!(name.is_empty() || sources.contains(&format!("fn {name}(")), "there is no test {name}");
            tests += 1;
        }
    }
    assert!(quotes >= 10 && tests >= 10);
}
