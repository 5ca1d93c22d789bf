//! Runs the committed inputs: each reached code that no other reached, or once failed.

use std::fs;
use std::path::{Path, PathBuf};
use tidegate_fuzz::TARGETS;

/// Inputs that are committed for each target: enough to reach nearly all edges, few enough to review.
const MOST_INPUTS: usize = 20;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn replay(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    let inputs = files(&root("corpus").join(name));
    assert!(!inputs.is_empty(), "no input of {name} was kept");
    assert!(inputs.len() <= MOST_INPUTS, "{name} has {} inputs; keep the {MOST_INPUTS} that reach most", inputs.len());
    for input in inputs {
        println!("{}", input.display()); // on a failure, the last line is the input that failed
        target(&fs::read(input).unwrap());
    }
    target(&[]);
}

#[test]
fn each_target_has_a_program_and_committed_inputs() {
    let stems = |folder: &str| -> Vec<String> {
        files(&root(folder)).iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let names = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!((stems("fuzz_targets"), stems("corpus")), (names.to_vec(), names.to_vec()));
}

#[test]
fn inputs_of_algebra() {
    replay("algebra");
}

#[test]
fn inputs_of_boundary() {
    replay("boundary");
}

#[test]
fn inputs_of_codec() {
    replay("codec");
}

#[test]
fn inputs_of_file() {
    replay("file");
}

#[test]
fn inputs_of_identity() {
    replay("identity");
}

#[test]
fn inputs_of_policy() {
    replay("policy");
}

#[test]
fn inputs_of_replay() {
    replay("replay");
}

#[test]
fn inputs_of_table() {
    replay("table");
}
