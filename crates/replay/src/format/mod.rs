//! The formats of logs, and their detection.

mod common;
mod csv;
mod json;

use crate::error::{Error, shown};
use crate::fields::{Fields, Record, Wanted};
use memchr::memchr;
use serde::Deserialize;
use tsify::Tsify;

/// A format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Tsify)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The common log format of web servers, and the combined one, which has two more fields.
    Common,
    /// A JSON object on each line.
    Json,
    /// Rows under a line of column names, separated by comma, semicolon or tab.
    Csv,
}

impl Format {
    const ALL: [Format; 3] = [Format::Json, Format::Common, Format::Csv];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Common => "common",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}

/// Lines that are tried first. If none is a request, as after a long banner, all lines of the head are.
const LOOKED_AT: usize = 20;

/// Whether a row ends with the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Complete,
    /// A quoted field continues on the next line.
    Continues,
}

/// Splits lines of one format into fields.
pub(crate) enum Splitter {
    Common(Box<common::Splitter>),
    Json(json::Splitter),
    Csv(Box<csv::Splitter>),
}

impl Splitter {
    /// `first` is the file's first line that is not empty; with CSV, it has the names.
    fn new(format: Format, first: &[u8], wanted: &Wanted) -> Result<Splitter, String> {
        Ok(match format {
            Format::Common => Splitter::Common(Box::new(common::Splitter::new(wanted)?)),
            Format::Json => Splitter::Json(json::Splitter::new(wanted)),
            Format::Csv => Splitter::Csv(Box::new(csv::Splitter::new(first, wanted)?)),
        })
    }

    pub(crate) fn split(&mut self, line: &[u8], fields: &mut Fields) -> Result<Row, String> {
        match self {
            Splitter::Common(splitter) => splitter.split(line, fields),
            Splitter::Json(splitter) => splitter.split(line, fields),
            Splitter::Csv(splitter) => splitter.split(line, fields),
        }
    }

    /// Ends a row whose next line is not held.
    pub(crate) fn restart(&mut self) {
        if let Splitter::Csv(splitter) = self {
            splitter.restart();
        }
    }

    /// Whether the file's first line is not a request.
    pub(crate) fn has_names(&self) -> bool {
        matches!(self, Splitter::Csv(_))
    }

    /// Whether one of these lines is a request; if none is, why the first is not.
    fn fits<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>, wanted: &mut Wanted) -> Result<(), String> {
        let (mut fields, mut record) = (Fields::default(), Record::default());
        let mut first = None;
        for line in lines.skip(usize::from(self.has_names())) {
            fields.clear(wanted.slots.len());
            let read = match self.split(line, &mut fields) {
                Ok(Row::Continues) => continue,
                read => read.and_then(|_| wanted.record(&fields, &mut record)),
            };
            match read {
                Ok(()) => return Ok(()),
                Err(why) => first = first.or(Some(why)),
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// The first bytes of files of other formats, and what to do with them.
const OTHERS: [(&[u8], &str); 17] = [
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"\x28\xb5\x2f\xfd", "packed by zstd; unpack it first: zstd -dc <file> | tidegate-replay -"),
    (b"BZh", "packed by bzip2; unpack it first: bzip2 -dc <file> | tidegate-replay -"),
    (b"\xfd7zXZ", "packed by xz; unpack it first: xz -dc <file> | tidegate-replay -"),
    (b"PK\x03\x04", "a zip archive; unpack it first: unzip -p <file> | tidegate-replay -"),
    (b"#Version:", W3C),
    (b"#Software:", W3C),
    (b"#Fields:", W3C),
    (b"http 2", ALB),
    (b"https 2", ALB),
    (b"h2 2", ALB),
    (b"ws 2", ALB),
    (b"wss 2", ALB),
    (b"{\n", "JSON over several lines; write each object on its own line first: jq -c . <file> | tidegate-replay -"),
    (b"[{", JSON_ARRAY),
    (b"[\n", JSON_ARRAY),
];
/// CloudFront's and IIS's.
const W3C: &str = "a W3C extended log; convert it to CSV first: awk 'BEGIN { print \"time,ip\" } \
/^#Fields:/ { for (i = 2; i <= NF; i++) at[$i] = i - 1 } \
!/^#/ { print $at[\"date\"] \"T\" $at[\"time\"] \"Z,\" $at[\"c-ip\"] }' <file> | tidegate-replay -";
const ALB: &str = "a log of an AWS load balancer; make CSV of it before: \
awk 'BEGIN { print \"time,ip\" } { print $2 \",\" $4 }' <file> | tidegate-replay -";
/// `%ci:%cp [%tr]`, behind whatever syslog writes.
const HAPROXY: &str = "a text log of HAProxy; convert it to CSV first: awk 'BEGIN { print \"time,ip\" } \
{ for (i = 2; i <= NF; i++) if ($i ~ /^\\[[0-9]+\\/[A-Z]/) \
{ print substr($i, 2, length($i) - 2) \" +0000,\" $(i - 1); break } }' <file> | tidegate-replay -";
/// In Istio's format there is one more text before the client's addresses, the failure of the upstream.
const ENVOY: &str = "a text log of Envoy; convert it to CSV first: awk -F'\"' 'BEGIN { print \"time,ip\" } \
{ split(NF > 14 ? $6 : $4, ip, \",\"); print substr($1, 2, index($1, \"]\") - 2) \",\" ip[1] }' <file> | tidegate-replay -";
const JSON_ARRAY: &str =
    "a JSON array; write each element on its own line first: jq -c '.[]' <file> | tidegate-replay -";
const UTF_16: &str = "UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8 <file> | tidegate-replay -";

const RETURNS: &str =
    "a log whose lines end with carriage returns alone; convert it first: tr '\\r' '\\n' < <file> | tidegate-replay -";

/// Refuses a file that begins with several lines that end with carriage returns alone: they would be read as one.
pub(crate) fn refuse_returns(file: &str, head: &[u8]) -> Result<(), Error> {
    let is_one_line = memchr(b'\n', head).is_none();
    if is_one_line && memchr(b'\r', head.trim_ascii()).is_some() {
        return Err(Error(format!("{file} has no known format: it is {RETURNS}")));
    }
    Ok(())
}

/// The format of a file that begins with `head`, or the format that the caller gave.
pub(crate) fn detect(
    given: Option<Format>,
    file: &str,
    head: &[u8],
    wanted: &mut Wanted,
) -> Result<Option<(Format, Splitter)>, Error> {
    let lines = || head.split(|c| *c == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines().next() else { return Ok(None) };
    let candidates = given.as_ref().map_or(&Format::ALL[..], std::slice::from_ref);
    let mut tried = Vec::new();
    for most in [LOOKED_AT, usize::MAX] {
        tried.clear();
        for format in candidates {
            let fitting = Splitter::new(*format, first, wanted).and_then(|mut splitter| {
                splitter.fits(lines().take(most), wanted)?;
                Splitter::new(*format, first, wanted)
            });
            match fitting {
                Ok(splitter) => return Ok(Some((*format, splitter))),
                Err(why) => tried.push(format!("\n  {}: {why}", format.name())),
            }
        }
    }
    let known = OTHERS.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, remedy)| *remedy);
    let why = match known.or_else(|| proxy(first)) {
        Some(remedy) => format!(": it is {remedy}"),
        None => format!(
            ". It begins with\n  {}\nTried:{}\n--time, --key and --cost name other fields",
            shown(first),
            tried.concat()
        ),
    };
    Err(Error(format!("{file} has no known format{why}")))
}

/// What to do with a line of a proxy's own text format, which is known by its time.
fn proxy(line: &[u8]) -> Option<&'static str> {
    let time = line.split(|c| *c == b' ').find(|word| word.starts_with(b"["))?;
    let is = |pattern: &[u8]| {
        time.len() == pattern.len()
            && time.iter().zip(pattern).all(|(c, p)| c == p || *p == b'_' && c.is_ascii_alphanumeric())
    };
    // HAProxy has ms and no offset in the format of web servers.
    if is(b"[__/___/____:__:__:__.___]") {
        return Some(HAPROXY);
    }
    (line.starts_with(b"[") && is(b"[____-__-__T__:__:__.___Z]")).then_some(ENVOY)
}
