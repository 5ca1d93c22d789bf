//! Reads the fields of an object: each once, and unknown fields are mistakes.

use crate::nearest::nearest;
use crate::problem::Report;
use crate::tree::{SHOWN, Tree, quoted};

/// Most fields of one object, more than the plans and conditions of any real document.
pub const MAX_FIELDS: usize = 1000;

/// An object of the document, with the path that leads to it.
pub(crate) struct Fields<'a> {
    path: String,
    entries: Vec<(&'a str, &'a Tree)>,
}

/// A long name is in quotes, which cut it: each mistake repeats its path.
fn join(path: &str, field: &str) -> String {
    let plain =
        (1..=SHOWN).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$".contains(&b));
    match (path.is_empty(), plain) {
        (true, true) => field.into(),
        (false, true) => format!("{path}.{field}"),
        (_, false) => format!("{path}[{}]", quoted(field)),
    }
}

impl<'a> Fields<'a> {
    /// The object at `path`. Reports any other value, a field outside of `known`, and a repeated field.
    pub(crate) fn read(
        tree: Option<&'a Tree>,
        path: &str,
        known: &[&str],
        what: &str,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let mut fields = Self::open(tree, path, &format!("an object with {}", known.join(", ")), report)?;
        fields.entries.retain(|(_, value)| !value.is_undefined());
        for (field, value) in &fields.entries {
            if known.contains(field) {
                continue;
            }
            if report.is_full() {
                report.skip();
                continue;
            }
            let hint = nearest(field, known).map(|word| format!("did you mean `{word}`?"));
            let expected = format!("absent: {what} has {}", known.join(", "));
            report.add(&fields.at(field), expected, value.shown(), hint);
        }
        Some(fields)
    }

    /// The object at `path`, with any field names. One that is undefined is kept: it is a mistake, since without it a condition
    /// would match every request.
    pub(crate) fn open(tree: Option<&'a Tree>, path: &str, expected: &str, report: &mut Report<'_>) -> Option<Self> {
        let Some(Tree::Map(map)) = tree else { return report.refuse(path, expected, tree) };
        if map.len() > MAX_FIELDS {
            report.add(
                path,
                format!("an object of at most {MAX_FIELDS} fields"),
                format!("{} of them", map.len()),
                None,
            );
            return None;
        }
        let mut fields = Fields { path: path.into(), entries: Vec::with_capacity(map.len()) };
        // Sorted. For the few names of an object that takes less code than a set.
        let mut names: Vec<&str> = Vec::with_capacity(map.len());
        for (field, value) in map {
            match names.binary_search(&field.as_str()) {
                Ok(_) => report.add(&fields.at(field), "given once".into(), "it again".into(), None),
                Err(at) => {
                    names.insert(at, field);
                    fields.entries.push((field, value));
                }
            }
        }
        Some(fields)
    }

    pub(crate) fn get(&self, field: &str) -> Option<&'a Tree> {
        self.entries.iter().find(|(name, _)| *name == field).map(|(_, value)| *value)
    }

    /// `true` or `false`, by default `false`.
    pub(crate) fn flag(&self, field: &str, report: &mut Report<'_>) -> bool {
        match self.get(field) {
            None => false,
            Some(Tree::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong(field, "true or false", report);
                false
            }
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Tree)> {
        self.entries.iter().copied()
    }

    pub(crate) fn wrong(&self, field: &str, expected: impl Into<String>, report: &mut Report<'_>) {
        report.wrong(&self.at(field), expected, self.get(field));
    }

    pub(crate) fn refuse<T>(&self, field: &str, expected: impl Into<String>, report: &mut Report<'_>) -> Option<T> {
        self.wrong(field, expected, report);
        None
    }

    pub(crate) fn at(&self, field: &str) -> String {
        join(&self.path, field)
    }
}
