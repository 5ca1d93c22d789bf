//! "Did you mean": the known word with the fewest edits.

#[cfg(test)]
thread_local! {
    /// How many distances this thread computed.
    static DISTANCES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Words are compared without case; of a long one its beginning, since the time grows with the length.
fn normalized(word: &str) -> String {
    word.chars().take(64).map(|c| c.to_ascii_lowercase()).collect()
}

/// The known word that was probably meant: at most a third of its letters differ. Two swapped letters are one edit.
pub(crate) fn nearest<'a>(written: &str, words: &[&'a str]) -> Option<&'a str> {
    let written = normalized(written);
    let ranked = words.iter().copied().map(|word| {
        #[cfg(test)]
        DISTANCES.set(DISTANCES.get() + 1);
        (strsim::osa_distance(&written, &normalized(word)), word)
    });
    let (edits, word) = ranked.min_by_key(|(edits, _)| *edits)?;
    (edits * 3 <= word.len().max(3)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::problem::MAX_PROBLEMS;
    use crate::tree::Tree;

    /// A document of `rules` rules with `fields` unknown fields each.
    fn unknown(rules: usize, fields: usize) -> Tree {
        let rule = |rule| {
            // As long as the known fields, so that no comparison is skipped for its length.
            let unknown = (0..fields).map(|field| (format!("limit{rule}_{field}"), Tree::Null));
            Tree::Map(unknown.collect())
        };
        Tree::Map(vec![("rules".into(), Tree::List((0..rules).map(rule).collect()))])
    }

    fn check(tree: &Tree) -> (usize, Vec<String>) {
        DISTANCES.set(0);
        let problems = Document::read(tree).unwrap_err().0;
        (DISTANCES.get(), problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn computes_no_more_distances_for_100_000_unknown_fields_than_for_1000() {
        let (few, _) = check(&unknown(1, 1000));
        let (many, messages) = check(&unknown(100, 1000));
        assert!(few > 0 && many <= few, "{few}, {many}");
        assert_eq!(messages.len(), MAX_PROBLEMS + 1);
        // Each rule also lacks four fields and the two numbers of its config.
        let last = messages.last().unwrap();
        assert!(
            last.starts_with("`document` must be free of mistakes, of which the first 1000 are listed; got 10"),
            "{last}"
        );
    }

    #[test]
    fn suggests_a_word_of_few_edits_and_none_for_many() {
        let words = ["limit_keys", "name", "algorithm", "algorithm_config", "by"];
        for (written, meant) in [
            ("limit_kyes", Some("limit_keys")),
            ("limitKeys", Some("limit_keys")),
            ("Algorithm-Config", Some("algorithm_config")),
            ("nmae", Some("name")),
            ("yb", Some("by")),
            ("__proto__", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, &words), meant, "{written}");
        }
    }
}
