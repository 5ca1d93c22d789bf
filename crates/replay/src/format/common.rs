//! `host ident user [time] "request" status bytes "referer" "user agent"`, the last two in the combined format alone.

use super::Row;
use crate::fields::{Fields, Wanted, named, same};
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};
use std::net::IpAddr;

/// Each field with the index of its piece; the pieces of the request come last.
const PIECES: [(&str, usize); 15] = [
    ("host", 0),
    ("ip", 0),
    ("remote_addr", 0),
    ("ident", 1),
    ("user", 2),
    ("remote_user", 2),
    ("time", 3),
    ("request", 4),
    ("status", 5),
    ("bytes", 6),
    ("referer", 7),
    ("user_agent", 8),
    ("method", 9),
    ("path", 10),
    ("protocol", 11),
];
const TIME: usize = 3;
const REQUEST: usize = 4;
/// The referer and the user agent.
const HEADERS: [usize; 2] = [7, 8];
const LAST: usize = 8;
const METHOD: usize = 9;

pub(crate) struct Splitter {
    /// Each slot's piece.
    pieces: Vec<Option<usize>>,
    /// The last piece that is read.
    last: usize,
    /// The text around the time, built once.
    before_time: Finder<'static>,
    behind_time: Finder<'static>,
}

impl Splitter {
    pub(crate) fn new(wanted: &Wanted) -> Result<Splitter, String> {
        let mut pieces = Vec::new();
        for slot in &wanted.slots {
            // `host` here is the client, and not the header of a rule.
            let is_header = slot.names.get(1).is_some_and(|name| *name == format!("http_{}", slot.names[0]));
            let known = || PIECES.iter().filter(|(_, piece)| !is_header || HEADERS.contains(piece));
            let piece = |name: &String| known().find(|(known, _)| same(known, name)).map(|(_, piece)| *piece);
            let found = slot.names.iter().find_map(piece);
            if found.is_none() && !slot.optional {
                let known = known().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                return Err(format!("no field {}; there are {known}", named(slot)));
            }
            pieces.push(found);
        }
        let last = pieces.iter().flatten().map(|p| if *p >= METHOD { REQUEST } else { *p }).max().unwrap_or(TIME);
        let last = last.max(TIME);
        Ok(Splitter { pieces, last, before_time: Finder::new(b" ["), behind_time: Finder::new(b"] \"") })
    }

    pub(crate) fn split(&mut self, line: &[u8], fields: &mut Fields) -> Result<Row, String> {
        let why = "not `host ident user [time] \"request\" status bytes`";
        let found = self.pieces_of(line).ok_or(why)?;
        for (slot, piece) in self.pieces.iter().enumerate() {
            let Some(piece) = piece else { continue };
            let text = match piece.checked_sub(METHOD) {
                None => found[*piece],
                Some(word) => found[REQUEST].and_then(|text| text.split(|c| *c == b' ').nth(word)),
            };
            if let Some(text) = text {
                fields.set(slot, text);
            }
        }
        Ok(Row::Complete)
    }

    /// The pieces of a line up to `last`; those after the request may be missing. `None` if the line is not of this
    /// format.
    fn pieces_of<'a>(&self, line: &'a [u8]) -> Option<[Option<&'a [u8]>; LAST + 1]> {
        let mut found = [None; LAST + 1];
        let (mut host, mut rest) = cut(line, memchr(b' ', line)?, 1);
        if let Some(first) = host.strip_suffix(b",").filter(|first| is_address(first)) {
            // Forwarded addresses instead of the host: those behind the first are of proxies.
            host = first;
            let mut more = true;
            while more {
                let (proxy, behind) = cut(rest, memchr(b' ', rest)?, 1);
                (more, rest) = (proxy.ends_with(b","), behind);
            }
        } else if !rest.starts_with(b"- ")
            && !is_address(host)
            && let Some(at) = client_at(&line[..self.before_time.find(line)?])
        {
            (host, rest) = cut(&line[at..], memchr(b' ', &line[at..])?, 1);
        }
        let (ident, rest) = cut(rest, memchr(b' ', rest)?, 1);
        // A user name may contain spaces.
        let (user, rest) = cut(rest, self.before_time.find(rest)?, 2);
        let (time, mut rest) = cut(rest, self.behind_time.find(rest)?, 2);
        if host.is_empty() {
            return None;
        }
        [found[0], found[1], found[2], found[3]] = [Some(host), Some(ident), Some(user), Some(time)];
        for place in found.iter_mut().take(self.last + 1).skip(REQUEST) {
            let (text, behind) = if rest.first() == Some(&b'"') { quoted(rest)? } else { word(rest) };
            *place = Some(text).filter(|text| !text.is_empty());
            rest = behind.strip_prefix(b" ").unwrap_or(behind);
        }
        Some(found)
    }
}

/// Where the client begins behind other text: the name of the server in Apache's `vhost_combined`, or what syslog, Docker or
/// Kubernetes write before each line. That text may have an address too, but then no `-` is behind it.
fn client_at(head: &[u8]) -> Option<usize> {
    memchr_iter(b' ', head).enumerate().find_map(|(words, space)| {
        let (first, behind) = word(&head[space + 1..]);
        ((words == 0 || behind.starts_with(b" - ")) && is_address(first)).then_some(space + 1)
    })
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

fn cut(text: &[u8], at: usize, skip: usize) -> (&[u8], &[u8]) {
    (&text[..at], &text[at + skip..])
}

fn word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr(b' ', text).unwrap_or(text.len()))
}

/// The text between quotes; `\"` does not end it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((&text[1..at], &text[at + 1..]));
        }
        at += 2;
    }
}
