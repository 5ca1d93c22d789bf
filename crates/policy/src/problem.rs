//! A mistake in a document: where, what was expected, what was given, and what was probably meant.

use crate::tree::Tree;
use serde::Serialize;
use std::fmt;

/// One mistake in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Index of the rule; `None` for the document and its `fallback_limit`.
    pub rule: Option<usize>,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// Path from the document's root: `rules[0].algorithm_config.burst`.
    pub path: String,
    /// The end of the sentence "`path` must be …".
    pub expected: String,
    /// The value given.
    pub got: String,
    /// What was probably meant, or the remedy.
    pub hint: Option<String>,
    /// The whole message, as one sentence.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The mistakes of a document, in the order of the document's rules: all of them up to 1000. If there are more, one
/// further problem states how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The most mistakes that are listed: a check takes time and memory in proportion to the document.
pub(crate) const MAX_PROBLEMS: usize = 1000;

/// The mistakes of a document.
#[derive(Default)]
pub(crate) struct Found {
    listed: Vec<Problem>,
    total: usize,
}

impl Found {
    /// The listed mistakes. If there are more, the last one states how many.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        let total = self.total;
        if total > self.listed.len() {
            let expected = format!("free of mistakes, of which the first {MAX_PROBLEMS} are listed");
            self.listed.push(problem(&Part::Document, "", expected, total.to_string(), None));
        }
        self.listed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Which part of the document is being read.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Document,
    Rule { index: usize, name: Option<String> },
    Fallback,
}

/// Collects the mistakes of one part of the document.
pub(crate) struct Report<'a> {
    pub(crate) part: Part,
    found: &'a mut Found,
}

impl<'a> Report<'a> {
    pub(crate) fn new(part: Part, found: &'a mut Found) -> Self {
        Report { part, found }
    }

    /// Reports that the field at `path` (inside the part) is not as expected. `None`: the field is absent.
    pub(crate) fn wrong(&mut self, path: &str, expected: impl Into<String>, got: Option<&Tree>) {
        self.add(path, expected.into(), got.map_or_else(|| "nothing".into(), Tree::shown), None);
    }

    /// Reports the mistake, and returns `None` as the value of the field.
    pub(crate) fn refuse<T>(&mut self, path: &str, expected: impl Into<String>, got: Option<&Tree>) -> Option<T> {
        self.wrong(path, expected, got);
        None
    }

    pub(crate) fn add(&mut self, path: &str, expected: String, got: String, hint: Option<String>) {
        if !self.is_full() {
            self.found.listed.push(problem(&self.part, path, expected, got, hint));
        }
        self.found.total += 1;
    }

    /// Whether the list is full, so that further mistakes are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.listed.len() >= MAX_PROBLEMS
    }

    /// Counts a mistake that is not listed.
    pub(crate) fn skip(&mut self) {
        self.found.total += 1;
    }

    /// Number of mistakes so far, of all parts.
    pub(crate) fn count(&self) -> usize {
        self.found.total
    }
}

fn problem(part: &Part, path: &str, expected: String, got: String, hint: Option<String>) -> Problem {
    let (rule, name, prefix, who) = match part {
        Part::Document => (None, None, String::new(), String::new()),
        Part::Fallback => (None, None, "fallback_limit".into(), "fallback_limit: ".into()),
        Part::Rule { index, name } => {
            let named = name.as_deref().map_or_else(String::new, |name| format!(" {}", crate::tree::quoted(name)));
            (Some(*index), name.clone(), format!("rules[{index}]"), format!("rule {index}{named}: "))
        }
    };
    let place = match (prefix.is_empty(), path.is_empty()) {
        (_, true) => prefix,
        (true, false) => path.into(),
        (false, false) => format!("{prefix}.{path}"),
    };
    let field = if path.is_empty() { place.as_str() } else { path };
    let field = if field.is_empty() { "document" } else { field };
    let remedy = hint.as_deref().map_or_else(String::new, |hint| format!("; {hint}"));
    let message = format!("{who}`{field}` must be {expected}; got {got}{remedy}");
    Problem { rule, name, path: place, expected, got, hint, message }
}
