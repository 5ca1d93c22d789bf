use tidegate_core::{Reason, State};
use tidegate_policy::{Document, Plain, grantable};

/// Any text is a document that can be put in force, or told of by sentences.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let checked = Document::parse(text);
    match &checked {
        Ok(document) => {
            for rule in document.limits() {
                let tiers = rule.tiers.iter().flat_map(|tiers| &tiers.settings).map(|(_, policy)| policy);
                for policy in tiers.chain([&rule.policy]) {
                    let taken = policy.rule(0.0).take(None::<State>, 1e12, rule.cost.default, rule.reserve);
                    // A debt that takes until the clock's end is the one thing that no document is refused for.
                    assert!(taken.decision.ok || taken.decision.reason == Some(Reason::ExceedsClock), "{rule:?}");
                    assert!(rule.cost.default >= 0.0 && rule.cost.min <= rule.cost.default);
                    assert!(grantable(policy, rule.reserve) >= rule.cost.default);
                }
            }
            let mut names: Vec<&str> = document.limits().map(|rule| rule.name.as_str()).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
        Err(problems) => {
            assert!(!problems.0.is_empty());
            for problem in &problems.0 {
                assert!(problem.message.contains(" must be ") && problem.message.contains("; got "), "{problem}");
            }
        }
    }
    assert_eq!(checked, Document::parse(text));
    let _ = Plain::from(checked);
}
