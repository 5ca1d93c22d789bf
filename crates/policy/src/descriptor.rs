//! A place in a request: `ip:address`, `header:x-api-key`, `jwt:sub`, `query:project`.

use crate::nearest::nearest;
use crate::problem::Report;
use crate::tree::Tree;
use serde::Serialize;

/// The kinds of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The client's address, in the form that the HTTP layer uses as a key.
    Ip,
    /// A header; its name is in lower case.
    Header,
    /// A claim of a JWT, which the host must have verified.
    Jwt,
    /// A parameter of the URL's query.
    Query,
}

/// A place in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Descriptor {
    /// The kind of place.
    pub source: Source,
    /// Name within the kind: `address`, or the name of the header, claim or parameter.
    pub name: String,
}

/// The end of the sentence "… must be".
pub(crate) const EXPECTS: &str =
    "\"ip:address\", or \"header:\", \"jwt:\" or \"query:\" followed by a name of 1 to 128 characters";
/// The characters of a header's name, besides letters and digits (RFC 9110, 5.6.2).
pub(crate) const HEADER: &str = "!#$%&'*+-.^_`|~";
const LONGEST: usize = 128;

impl Descriptor {
    /// Reads `source:name`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Descriptor> {
        let (source, name) = text.split_once(':')?;
        let fits = !name.is_empty() && name.chars().count() <= LONGEST && !name.chars().any(char::is_control);
        let token = |b: u8| b.is_ascii_alphanumeric() || HEADER.as_bytes().contains(&b);
        let (source, name) = match source {
            "ip" if name == "address" => (Source::Ip, name.into()),
            "header" if name.bytes().all(token) => (Source::Header, name.to_ascii_lowercase()),
            "jwt" => (Source::Jwt, name.into()),
            "query" => (Source::Query, name.into()),
            _ => return None,
        };
        fits.then_some(Descriptor { source, name })
    }

    /// The descriptor at `path`; `None` if it is wrong, which is reported.
    pub(crate) fn read(tree: Option<&Tree>, path: &str, report: &mut Report<'_>) -> Option<Descriptor> {
        let Some(Tree::Text(text)) = tree else { return report.refuse(path, EXPECTS, tree) };
        let found = Descriptor::parse(text);
        if found.is_none() {
            report.add(path, EXPECTS.into(), crate::tree::quoted(text), hint(text));
        }
        found
    }
}

fn hint(text: &str) -> Option<String> {
    let (source, name) = text.split_once(':').unwrap_or((text, ""));
    if source == "ip" || text == "address" {
        return Some("did you mean \"ip:address\"?".into());
    }
    let meant = nearest(source, &["header", "jwt", "query", "ip"])?;
    (meant != source).then(|| format!("did you mean {}?", crate::tree::quoted(&format!("{meant}:{name}"))))
}
