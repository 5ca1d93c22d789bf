//! Runs libFuzzer on each target of tests/fuzz for a limited time, starting from the committed inputs.
//!
//! It does what cargo-fuzz does with `--sanitizer none`, which needs no nightly toolchain, so that a new machine need
//! not build cargo-fuzz. New inputs go to `target/fuzz-corpus`; `--keep` reduces them and the committed ones to the
//! fewest and smallest with the same coverage.

use crate::cargo::{command, output, workspace_root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Compiler flags: count edges and comparisons for libFuzzer.
const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
];
/// What overflows or is asserted ends the run. By settings of `dev`, since macros are compiled again for each profile that has
/// a name.
const OPTIMIZED: [&str; 3] =
    ["profile.dev.opt-level=1", "profile.dev.codegen-units=1", "profile.dev.incremental=false"];
/// Longest input; longer ones reach nothing more.
const LONGEST: &str = "-max_len=4096";
/// Seconds past its time after which a target counts as hanging. One input may take 60 s.
const GRACE: u64 = 120;

#[derive(Default)]
pub(crate) struct Run {
    pub(crate) seconds: u32,
    pub(crate) seed: u32,
    pub(crate) keep: bool,
    /// Names of targets; none for all.
    pub(crate) names: Vec<String>,
    /// The compiler's name of one.
    pub(crate) sanitizer: Option<&'static str>,
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let mut run = Run { seconds: 10, ..Run::default() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                run.seconds = words.next().unwrap_or_default().parse().context("--seconds takes a number")?
            }
            "--seed" => run.seed = words.next().unwrap_or_default().parse().context("--seed takes a number")?,
            "--keep" => run.keep = true,
            flag if flag.starts_with('-') => bail!("unknown option {flag}"),
            _ => run.names.push(word),
        }
    }
    run_all(&workspace_root()?, &run)
}

pub(crate) fn run_all(root: &Path, run: &Run) -> Result<()> {
    let names = if run.names.is_empty() { targets(root)? } else { run.names.clone() };
    let programs = build(root, &names, run.sanitizer)?;
    let (mut passed, mut failed) = (0, 0);
    for name in &names {
        let found =
            fs::read_dir(root.join("tests/fuzz/corpus").join(name)).with_context(|| format!("corpus/{name}"))?;
        print!("fuzz {name}: from {} inputs, {} s ... ", found.count(), run.seconds);
        let output = fuzz(root, &programs, name, (run.seconds, run.seed))?;
        if output.status.success() {
            println!("ok: {}; {}", coverage(&output), last_line(&output));
            passed += 1;
            if run.keep {
                minimise(root, &programs, name)?;
            }
        } else {
            println!("FAILED\n{}", String::from_utf8_lossy(&output.stderr));
            failed += 1;
        }
    }
    println!("\ntest result: {passed} passed; {failed} failed; 0 ignored");
    if failed == 0 {
        Ok(())
    } else {
        bail!("a promise is broken; cargo test -p tidegate-fuzz repeats what is in corpus/")
    }
}

fn targets(root: &Path) -> Result<Vec<String>> {
    let files = fs::read_dir(root.join("tests/fuzz/fuzz_targets")).context("fuzz_targets")?;
    let mut names = Vec::new();
    for file in files {
        names.extend(file?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// The triple of this machine.
pub(crate) fn host() -> Result<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV prints no host")?;
    Ok(host.to_owned())
}

/// Returns the folder of the programs. A target triple keeps the flags from what runs at build time. No package is named, so that
/// macros have the features with which they were built before.
fn build(root: &Path, names: &[String], sanitizer: Option<&str>) -> Result<PathBuf> {
    let host = host()?;
    let mut flags = FLAGS.map(str::to_owned).to_vec();
    flags.extend(sanitizer.map(|sanitizer| format!("-Zsanitizer={sanitizer}")));
    let folder = sanitizer.map_or_else(|| "target".to_owned(), |sanitizer| format!("target/sanitize/{sanitizer}"));
    let mut cargo = command();
    cargo.current_dir(root).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    if sanitizer.is_some() {
        cargo.env("RUSTC_BOOTSTRAP", "1");
    }
    cargo.args(["build", "--features", "tidegate-fuzz/libfuzzer"]);
    for setting in OPTIMIZED {
        cargo.args(["--config", setting]);
    }
    cargo.args(["--target-dir", &folder, "--target", &host]);
    for name in names {
        cargo.args(["--bin", name]);
    }
    if !cargo.status().context("cargo build")?.success() {
        bail!("the targets do not build");
    }
    Ok(root.join(folder).join(host).join("debug"))
}

fn folder(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
    Ok(path)
}

fn fuzz(root: &Path, programs: &Path, name: &str, (seconds, seed): (u32, u32)) -> Result<Output> {
    let found = folder(root.join("target/fuzz-corpus").join(name))?;
    let broken = folder(root.join("target/fuzz-artifacts"))?;
    let mut program = Command::new(programs.join(name));
    program.arg(found).arg(root.join("tests/fuzz/corpus").join(name)).arg(LONGEST).arg("-timeout=60");
    program.arg(format!("-max_total_time={seconds}")).arg("-rss_limit_mb=4096");
    // 0 is a random seed.
    program.arg(format!("-seed={seed}"));
    program.arg(format!("-artifact_prefix={}/{name}-", broken.display()));
    // A program with corrupt memory may hang while it reports the failure.
    let log = folder(root.join("target/fuzz-logs"))?.join(name);
    let mut child = program.stderr(fs::File::create(&log)?).spawn().with_context(|| format!("run {name}"))?;
    let last = Instant::now() + Duration::from_secs(u64::from(seconds) + GRACE);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > last {
            child.kill()?;
        }
        sleep(Duration::from_millis(100));
    };
    Ok(Output { status, stdout: Vec::new(), stderr: fs::read(log)? })
}

/// The edges that all inputs together reach, of those that there are.
fn coverage(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let number = |before: &str, after: &str| {
        let found = text.rsplit(before).next().and_then(|rest| rest.split_once(after)).map(|(number, _)| number.trim());
        found.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or("?").to_owned()
    };
    format!("{} of {} edges", number(" cov: ", " "), number("inline 8-bit counters): ", " ["))
}

/// libFuzzer's summary, at the end of its output.
fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

fn minimise(root: &Path, programs: &Path, name: &str) -> Result<()> {
    let kept = root.join("tests/fuzz/corpus").join(name);
    let fresh = root.join("target/fuzz-corpus").join(format!("{name}.kept"));
    let _ = fs::remove_dir_all(&fresh);
    let fresh = folder(fresh)?;
    let mut program = Command::new(programs.join(name));
    program.args(["-set_cover_merge=1", "-use_counters=0", "-use_cmp=0", LONGEST]).args([
        &fresh,
        &kept,
        &root.join("target/fuzz-corpus").join(name),
    ]);
    let output = program.output().context("merge")?;
    if !output.status.success() {
        bail!("{name} cannot be reduced\n{}", String::from_utf8_lossy(&output.stderr));
    }
    fs::remove_dir_all(&kept)?;
    folder(kept.clone())?;
    for file in fs::read_dir(&fresh)? {
        let path = file?.path();
        fs::copy(&path, kept.join(path.file_name().context("a file")?))?;
    }
    Ok(())
}
