//! The fields of a line that are read, and their values.

use crate::error::shown;
use crate::key;
use crate::scope::{Cost, Scope};
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
    /// Whether it is the client's address, by all of its names or one of them.
    address: bool,
}

/// The fields that are read of each line. The first is the time.
pub(crate) struct Slots {
    all: Vec<Slot>,
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq)]
struct Key {
    parts: Vec<usize>,
    /// Whether it is the key of a rule, which has a place for a part that a request lacks.
    rule: bool,
}

impl Key {
    /// The key of a line, or why it has none.
    fn write(&self, slots: &[Slot], fields: &Fields, key: &mut Vec<u8>) -> Result<(), String> {
        for slot in &self.parts {
            let is_address = slots[*slot].address;
            match fields.get(*slot) {
                // A request without an address has one all the same, which the log lacks.
                None if self.rule && !is_address => key.push(key::ABSENT),
                None => return Err(lacks(&slots[*slot])),
                Some(text) if self.rule || self.parts.len() > 1 => key::write_tuple_part(text, is_address, key),
                Some(text) => key::write_part(text, is_address, key),
            }
        }
        if key.len() > MAX_KEY_BYTES && self.rule {
            key::hash(key);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(format!("a key of {} bytes; a limiter takes {MAX_KEY_BYTES}", key.len()));
        }
        Ok(())
    }
}

impl Slots {
    pub(crate) fn new(time: Option<&str>) -> Slots {
        let names = time.map_or_else(|| TIMES.map(str::to_owned).to_vec(), |name| vec![name.to_owned()]);
        Slots { all: vec![Slot { names, optional: false, address: false }], keys: vec![] }
    }

    fn add(&mut self, names: Vec<String>, optional: bool) -> usize {
        let address = match names.as_slice() {
            [name] => ADDRESSES.iter().any(|address| same(address, name)),
            names => names == ADDRESSES,
        };
        self.all.push(Slot { names, optional, address });
        self.all.len() - 1
    }

    /// A column that every line must have.
    pub(crate) fn column(&mut self, name: &str) -> usize {
        self.add(vec![name.to_owned()], false)
    }

    /// A field that a line may lack.
    pub(crate) fn stated(&mut self, names: Vec<String>) -> usize {
        self.add(known(names), true)
    }

    /// Index of the key with these parts, each given by its names; `None` if there are no parts.
    pub(crate) fn key(&mut self, parts: Vec<Vec<String>>, rule: bool) -> Option<usize> {
        let parts: Vec<Vec<String>> = parts.into_iter().map(known).collect();
        if parts.is_empty() {
            return None;
        }
        let same = |key: &Key| key.rule == rule && key.parts.iter().map(|slot| &self.all[*slot].names).eq(parts.iter());
        self.keys.iter().position(same).or_else(|| {
            let parts = parts.into_iter().map(|names| self.add(names, false)).collect();
            self.keys.push(Key { parts, rule });
            Some(self.keys.len() - 1)
        })
    }

    /// How many keys a record has.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// A key as a report names it.
    pub(crate) fn key_names(&self, key: Option<usize>) -> Vec<String> {
        let parts = key.map_or(&[][..], |key| self.keys[key].parts.as_slice());
        parts.iter().map(|slot| self.all[*slot].names[0].clone()).collect()
    }
}

/// The fields of one line as text, by slot.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Empty if the line has no such field.
    texts: Vec<Vec<u8>>,
}

impl Fields {
    pub(crate) fn clear(&mut self, slots: usize) {
        self.texts.resize_with(slots, Vec::new);
        self.texts.iter_mut().for_each(Vec::clear);
    }

    pub(crate) fn set(&mut self, slot: usize, text: &[u8]) {
        self.texts[slot].clear();
        self.texts[slot].extend_from_slice(text);
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&[u8]> {
        Some(self.texts[slot].as_slice()).filter(|text| !NOTHING.contains(text))
    }
}

/// One request: when, how many tokens of each limit, and on which keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Integer ms since the Unix epoch.
    pub(crate) now: f64,
    /// Cost of the request at each limit; NaN if the limit does not apply.
    pub(crate) counts: Vec<f64>,
    /// The keys of all limits, without repetition.
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Record {
    /// The key at this index; `None` if there is no index.
    #[inline]
    pub(crate) fn key(&self, index: Option<usize>) -> Option<&[u8]> {
        self.keys.get(index?).map(Vec::as_slice)
    }

    /// The highest cost at any limit, or one token if no limit applies.
    pub(crate) fn demand(&self) -> f64 {
        // `max` ignores NaN.
        let most = self.counts.iter().fold(f64::NAN, |most, count| most.max(*count));
        if most.is_nan() { 1.0 } else { most }
    }
}

/// Of the requests that a limit applies to which reads this field: whether one had it, and whether one lacked it.
#[derive(Clone, Copy, Default)]
struct Seen {
    had: bool,
    lacked: bool,
}

/// Builds requests from fields.
pub(crate) struct Wanted {
    pub(crate) slots: Vec<Slot>,
    keys: Vec<Key>,
    /// By slot.
    seen: Vec<Seen>,
    scopes: Vec<Scope>,
    times: Times,
}

impl Wanted {
    pub(crate) fn new(slots: Slots, scopes: Vec<Scope>) -> Wanted {
        let seen = vec![Seen::default(); slots.all.len()];
        Wanted { slots: slots.all, keys: slots.keys, seen, scopes, times: Times::default() }
    }

    /// Notes on the parts of the rules' keys, and on the costs, that requests lacked.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |slot: &usize| match self.seen[*slot] {
            Seen { had: true, lacked: true } => {
                Some(format!("requests without {} share one key, as on a server", named(&self.slots[*slot])))
            }
            Seen { had: false, lacked: true } => Some(format!(
                "no request has {}, so all share one key; --key names another field",
                named(&self.slots[*slot])
            )),
            _ => None,
        };
        let parts = self.keys.iter().filter(|key| key.rule).flat_map(|key| &key.parts);
        let mut notes: Vec<String> = parts.filter(|slot| !self.slots[**slot].address).filter_map(note).collect();
        for slot in self.scopes.iter().filter_map(|scope| scope.cost.stated()) {
            let named = named(&self.slots[slot]);
            let note =
                format!("no request has {named}, so each takes the rule's default cost; --cost names another field");
            if matches!(self.seen[slot], Seen { had: false, lacked: true }) && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// The request of a line, or why the line is not a request.
    pub(crate) fn record(&mut self, fields: &Fields, record: &mut Record) -> Result<(), String> {
        let slots = &self.slots;
        let get = |slot: usize| fields.get(slot).ok_or_else(|| lacks(&slots[slot]));
        record.now = self.times.read(get(0)?)?;
        record.counts.clear();
        let mut limited = false;
        for scope in &self.scopes {
            let is_it = |(slot, text): &(usize, String)| match fields.get(*slot) {
                Some(found) if slots[*slot].address => key::address(found) == text.as_bytes(),
                found => found == Some(text.as_bytes()),
            };
            let applies = if scope.fallback { !limited } else { scope.matches.iter().all(is_it) };
            limited |= applies && !scope.shadow;
            let parts = scope.key.map_or(&[][..], |key| &self.keys[key].parts);
            for slot in parts.iter().copied().chain(scope.cost.stated()).filter(|_| applies) {
                let has = fields.get(slot).is_some();
                self.seen[slot].had |= has;
                self.seen[slot].lacked |= !has;
            }
            record.counts.push(if applies { count(&scope.cost, fields, &get)? } else { f64::NAN });
        }
        record.keys.resize_with(self.keys.len(), Vec::new);
        for (key, bytes) in self.keys.iter().zip(&mut record.keys) {
            bytes.clear();
            key.write(slots, fields, bytes)?;
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

/// The names of a field, or all those of the client's address.
fn known(names: Vec<String>) -> Vec<String> {
    match names.as_slice() {
        [name] if same(name, ADDRESSES[0]) => ADDRESSES.map(str::to_owned).to_vec(),
        _ => names,
    }
}

fn lacks(slot: &Slot) -> String {
    format!("no field {}", named(slot))
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
