//! What the README quotes of the report.

const BEGIN: &str = "<!-- simulation -->\n";
const END: &str = "<!-- /simulation -->";

/// The README with these figures between its marks; the error says which mark is not there.
pub fn with_figures(readme: &str, figures: &str) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md has no {}", mark.trim());
    let (before, rest) = readme.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}{figures}\n{END}{after}"))
}
