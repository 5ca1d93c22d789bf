//! The fields of a line that are read, and their values.

use crate::error::shown;
use crate::key;
use crate::subject::{About, Cost};
use crate::time::Times;
use tidegate_core::{MAX_KEY_BYTES, check_count};

/// Names of the client's address in logs; `ip` matches any of them.
const ADDRESSES: [&str; 11] = [
    "ip",
    "remote_addr",
    "remote_address",
    "remote_ip",
    "client_ip",
    "client_addr",
    "client",
    "host",
    "req.remote_address",
    "request.remote_ip",
    "httpRequest.remoteIp",
];
const TIMES: [&str; 8] = ["time", "timestamp", "ts", "@timestamp", "datetime", "date", "time_local", "time_iso8601"];
/// Texts for an absent value.
const NOTHING: [&[u8]; 2] = [b"", b"-"];

/// Whether two names of a field are equal, without regard to case, `_` and `-`.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let plain = |text: &'_ str| {
        text.bytes().filter(|c| !matches!(c, b'_' | b'-')).map(|c| c.to_ascii_lowercase()).collect::<Vec<_>>()
    };
    plain(a) == plain(b)
}

/// A field to read, by any of its names; the first one that a line has is used.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) names: Vec<String>,
    /// Whether it may be absent.
    pub(crate) optional: bool,
}

/// The fields that are read of each line. The first is the time.
pub(crate) struct Slots {
    all: Vec<Slot>,
    /// Each key's parts.
    keys: Vec<Vec<usize>>,
}

impl Slots {
    pub(crate) fn new(time: Option<&str>) -> Slots {
        let names = time.map_or_else(|| TIMES.map(str::to_owned).to_vec(), |name| vec![name.to_owned()]);
        Slots { all: vec![Slot { names, optional: false }], keys: vec![] }
    }

    fn add(&mut self, names: Vec<String>, optional: bool) -> usize {
        self.all.push(Slot { names, optional });
        self.all.len() - 1
    }

    /// A column that every line must have.
    pub(crate) fn column(&mut self, name: &str) -> usize {
        self.add(vec![name.to_owned()], false)
    }

    /// A field that a line may lack.
    pub(crate) fn stated(&mut self, names: Vec<String>) -> usize {
        self.add(names, true)
    }

    /// Index of the key with these parts, each given by its names; `None` where there are no parts.
    pub(crate) fn key(&mut self, parts: Vec<Vec<String>>) -> Option<usize> {
        let address = || ADDRESSES.map(str::to_owned).to_vec();
        let parts: Vec<Vec<String>> = parts
            .into_iter()
            .map(|names| if names.iter().any(|name| same(name, "ip")) { address() } else { names })
            .collect();
        if parts.is_empty() {
            return None;
        }
        let known = self.keys.iter().position(|key| key.iter().map(|slot| &self.all[*slot].names).eq(parts.iter()));
        known.or_else(|| {
            let slots = parts.into_iter().map(|names| self.add(names, false)).collect();
            self.keys.push(slots);
            Some(self.keys.len() - 1)
        })
    }

    /// How many keys a record has.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// A key as a report names it.
    pub(crate) fn key_names(&self, key: Option<usize>) -> Vec<String> {
        let parts = key.map_or(&[][..], |key| self.keys[key].as_slice());
        parts.iter().map(|slot| self.all[*slot].names[0].clone()).collect()
    }
}

/// The fields of one line as text, by slot.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    texts: Vec<Vec<u8>>,
    there: Vec<bool>,
}

impl Fields {
    pub(crate) fn clear(&mut self, slots: usize) {
        self.texts.resize_with(slots, Vec::new);
        self.there.clear();
        self.there.resize(slots, false);
    }

    pub(crate) fn set(&mut self, slot: usize, text: &[u8]) {
        self.texts[slot].clear();
        self.texts[slot].extend_from_slice(text);
        self.there[slot] = true;
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&[u8]> {
        self.there[slot].then_some(self.texts[slot].as_slice()).filter(|text| !NOTHING.contains(text))
    }
}

/// One request: when, how many tokens of each limit, and on which keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Integer ms since the Unix epoch.
    pub(crate) now: f64,
    /// Cost of the request at each limit; NaN where the limit does not apply.
    pub(crate) counts: Vec<f64>,
    /// The keys of all limits, without repetition.
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Record {
    /// The highest cost at any limit, or one token where no limit applies.
    pub(crate) fn demand(&self) -> f64 {
        // `max` ignores NaN.
        let most = self.counts.iter().fold(f64::NAN, |most, count| most.max(*count));
        if most.is_nan() { 1.0 } else { most }
    }
}

/// Builds requests from fields.
pub(crate) struct Wanted {
    pub(crate) slots: Vec<Slot>,
    /// Each key's parts: its slot, and whether it is an address.
    keys: Vec<Vec<(usize, bool)>>,
    abouts: Vec<About>,
    times: Times,
}

impl Wanted {
    pub(crate) fn new(slots: Slots, abouts: Vec<About>) -> Wanted {
        let address = |slot: usize| slots.all[slot].names[0] == ADDRESSES[0];
        let keys = slots.keys.iter().map(|key| key.iter().map(|slot| (*slot, address(*slot))).collect()).collect();
        Wanted { slots: slots.all, keys, abouts, times: Times::default() }
    }

    /// The request of a line, or why the line is not a request.
    pub(crate) fn record(&mut self, fields: &Fields, record: &mut Record) -> Result<(), String> {
        let slots = &self.slots;
        let get = |slot: usize| fields.get(slot).ok_or_else(|| format!("no field {}", named(&slots[slot])));
        record.now = self.times.read(get(0)?)?;
        record.counts.clear();
        let mut any = false;
        for about in &self.abouts {
            let is_it = |(slot, text): &(usize, String)| fields.get(*slot) == Some(text.as_bytes());
            let applies = if about.fallback { !any } else { about.matches.iter().all(is_it) };
            any |= applies;
            record.counts.push(if applies { count(&about.cost, fields, &get)? } else { f64::NAN });
        }
        record.keys.resize_with(self.keys.len(), Vec::new);
        for (parts, key) in self.keys.iter().zip(&mut record.keys) {
            key.clear();
            match parts.as_slice() {
                [(slot, address)] => key::write_part(get(*slot)?, *address, key),
                parts => {
                    for (slot, address) in parts {
                        key::write_tuple_part(get(*slot)?, *address, key);
                    }
                }
            }
            if key.len() > MAX_KEY_BYTES {
                return Err(format!("a key of {} bytes; a limiter takes {MAX_KEY_BYTES}", key.len()));
            }
        }
        Ok(())
    }
}

#[inline]
fn count<'a>(cost: &Cost, fields: &Fields, get: &impl Fn(usize) -> Result<&'a [u8], String>) -> Result<f64, String> {
    match cost {
        Cost::Fixed(count) => Ok(*count),
        Cost::Column(slot) => {
            let text = get(*slot)?;
            let number = number(text).ok_or_else(|| format!("not a number of tokens: {:?}", shown(text)))?;
            check_count(number).map_err(|error| error.to_string())
        }
        Cost::Stated { slot, default, min, max } => {
            let stated = fields
                .get(*slot)
                .filter(|text| is_plain(text))
                .and_then(number)
                .and_then(|number| check_count(number).ok());
            Ok(stated.unwrap_or(*default).clamp(*min, max.max(*min)))
        }
    }
}

/// A decimal number without sign or exponent, as the middleware reads a stated cost.
fn is_plain(text: &[u8]) -> bool {
    let mut parts = text.split(|c| *c == b'.');
    let digits = |part: &[u8]| !part.is_empty() && part.len() <= 40 && part.iter().all(u8::is_ascii_digit);
    parts.next().is_some_and(digits) && parts.next().is_none_or(digits) && parts.next().is_none()
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// The name of a slot in messages.
pub(crate) fn named(slot: &Slot) -> String {
    match slot.names.as_slice() {
        [name] => format!("`{name}`"),
        [first, rest @ ..] => format!("`{first}` (or {})", rest.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_cost_is_digits_with_at_most_one_point_between_them() {
        let (most, more) = ("7".repeat(40), "7".repeat(41));
        for text in ["0", "10", "10.25", &most, &format!("1.{most}")] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        for text in ["", ".", ".5", "5.", "1.2.3", "1e3", "-1", "+1", " 1", "0x1", &more, &format!("1.{more}")] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
    }
}
