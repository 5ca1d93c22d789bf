use crate::sound::is_sound;
use tidegate_policy::{Checked, Document};

/// Any text is a usable document, or is rejected with a message for each mistake.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let checked = Document::parse(text);
    match &checked {
        Ok(document) => {
            is_sound(document);
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
    let _ = Checked::from(checked);
}
