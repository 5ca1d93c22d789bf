//! A whole document: `{ "rules": [ … ] }`.

use crate::fields::Fields;
use crate::problem::{Found, Part, Problem, Problems, Report};
use crate::rule::Rule;
use crate::tree::{Tree, quoted};
use serde::Serialize;

/// A valid document.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Document {
    /// The rules, in order. All that match a request apply to it.
    pub rules: Vec<Rule>,
    /// What applies if no rule matches; rules in shadow mode do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Rule>,
}

/// The result of a check as plain data, for hosts that are not Rust: the rules, or the problems.
#[derive(Debug, Serialize)]
pub struct Checked {
    rules: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<Rule>,
    problems: Vec<Problem>,
}

impl From<Result<Document, Problems>> for Checked {
    fn from(result: Result<Document, Problems>) -> Checked {
        match result {
            Ok(Document { rules, fallback }) => Checked { rules, fallback, problems: Vec::new() },
            Err(Problems(problems)) => Checked { rules: Vec::new(), fallback: None, problems },
        }
    }
}

pub(crate) const FIELDS: [&str; 3] = ["rules", "fallback_limit", "$schema"];
/// Most rules of a document: one decision takes from at most as many limits.
pub(crate) const MAX_RULES: usize = 100;

impl Document {
    /// Checks a document and reads it.
    ///
    /// # Errors
    /// Every mistake in the document: see [`Problems`].
    pub fn read(tree: &Tree) -> Result<Document, Problems> {
        let mut found = Found::default();
        let document = Self::collect(tree, &mut found).filter(|_| found.is_empty());
        document.ok_or_else(|| Problems(found.into_problems()))
    }

    /// Checks and reads a document from JSON text.
    ///
    /// ```
    /// use tidegate_policy::Document;
    ///
    /// let document = Document::parse(r#"{ "rules": [{
    ///     "name": "enterprise", "limit_keys": ["header:x-api-key"], "match": { "jwt:plan": "enterprise" },
    ///     "algorithm": "token_bucket", "algorithm_config": { "rps": 1000, "burst": 2000 }
    /// }] }"#)?;
    /// assert_eq!(document.rules[0].limit.policy.capacity(), 2000.0);
    ///
    /// let problems = Document::parse(r#"{ "rules": [{ "name": "a", "limit_kyes": [] }] }"#).unwrap_err();
    /// assert!(problems.0[0].message.ends_with("did you mean `limit_keys`?"));
    /// # Ok::<(), tidegate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    /// As [`Document::read`]; a string that is not JSON is one mistake.
    #[cfg(feature = "json")]
    pub fn parse(text: &str) -> Result<Document, Problems> {
        // Editors on Windows write a byte order mark, which RFC 8259 lets readers ignore.
        match serde_json::from_str::<Tree>(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            Ok(tree) => Self::read(&tree),
            Err(error) => {
                let mut found = Found::default();
                Report::new(Part::Document, &mut found).add("", "JSON".into(), error.to_string(), None);
                Err(Problems(found.into_problems()))
            }
        }
    }

    /// Every rule, the fallback last.
    pub fn limits(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().chain(&self.fallback)
    }

    fn collect(tree: &Tree, found: &mut Found) -> Option<Document> {
        let mut report = Report::new(Part::Document, found);
        let fields = Fields::read(Some(tree), "", &FIELDS, "a policy document", &mut report)?;
        match fields.get("$schema") {
            None | Some(Tree::Text(_)) => {}
            other => report.wrong("$schema", "a string", other),
        }
        let list = list(&fields, &mut report);
        let mut names = Names::default();
        let mut rules = Vec::new();
        for (index, tree) in list.iter().enumerate() {
            let mut report = Report::new(Part::Rule { index, name: None }, found);
            let rule = Rule::read(tree, &mut report);
            if let Part::Rule { name: Some(name), .. } = &report.part {
                let name = name.clone();
                names.add(name, rule.as_ref(), &mut report);
            }
            rules.extend(rule);
        }
        let fallback = fields.get("fallback_limit").and_then(|tree| {
            let mut report = Report::new(Part::Fallback, found);
            let rule = Rule::read(tree, &mut report)?;
            names.add(rule.name.clone(), Some(&rule), &mut report);
            if !rule.matches.is_empty() {
                let expected = "absent: the fallback applies if no rule matches";
                report.add("match", expected.into(), "an object".into(), None);
            }
            Some(rule)
        });
        Some(Document { rules, fallback })
    }
}

/// The `rules`. Too few or too many are reported, and read as none.
fn list<'a>(fields: &Fields<'a>, report: &mut Report<'_>) -> &'a [Tree] {
    let expected = format!("an array of 1 to {MAX_RULES} rules");
    match fields.get("rules") {
        Some(Tree::List(list)) if (1..=MAX_RULES).contains(&list.len()) => return list,
        Some(Tree::List(list)) => report.add("rules", expected, format!("{} of them", list.len()), None),
        other => report.wrong("rules", expected, other),
    }
    &[]
}

/// The names under which state is stored.
#[derive(Default)]
struct Names {
    rules: Vec<String>,
    /// The names under which blocks count.
    counts: Vec<String>,
}

impl Names {
    /// Adds the name of a rule, or reports that another rule stores its state there. `rule` is `None` if it has mistakes.
    fn add(&mut self, name: String, rule: Option<&Rule>, report: &mut Report<'_>) {
        let counts = rule.map_or_else(Vec::new, |rule| rule.enforcement.counts(&name));
        if let Some(count) = counts.iter().find(|count| self.rules.contains(count)) {
            let expected = format!("absent with the rule {}: the block counts under that name", quoted(count));
            report.add("block", expected, "an object".into(), None);
        }
        if self.rules.contains(&name) {
            let expected = "a name that no earlier rule has: the limit's state is stored under it";
            report.add("name", expected.into(), quoted(&name), None);
            return;
        }
        if self.counts.contains(&name) {
            let whose = quoted(name.rsplit_once('.').map_or("", |(rule, _)| rule));
            report.add("name", format!("another name: the block of {whose} counts under it"), quoted(&name), None);
        }
        self.rules.push(name);
        self.counts.extend(counts);
    }
}
