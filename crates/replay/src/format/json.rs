//! A JSON object on each line.
//!
//! The path of a field is found on the first line that has it, by its names in any case. From then on the reader skips
//! everything else.

use super::Split;
use crate::fields::{Fields, Slot, Wanted, same};
use serde::Deserializer as _;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The path of a field: names from the outside in.
type Path = Vec<String>;

pub(crate) struct Splitter {
    slots: Vec<Slot>,
    paths: Vec<Option<Path>>,
}

impl Splitter {
    pub(crate) fn new(wanted: &Wanted) -> Splitter {
        Splitter { slots: wanted.slots.clone(), paths: vec![None; wanted.slots.len()] }
    }

    pub(crate) fn split(&mut self, line: &[u8], fields: &mut Fields) -> Result<Split, String> {
        let mut reader = serde_json::Deserializer::from_slice(line);
        let pick = Pick { paths: &self.paths, active: u64::MAX, depth: 0, fields };
        let read = reader.deserialize_map(pick).and_then(|()| reader.end());
        read.map_err(|error| format!("not a JSON object: {error}"))?;
        for slot in 0..self.slots.len() {
            if fields.get(slot).is_none() {
                self.look(slot, line, fields);
            }
        }
        Ok(Split::Whole)
    }

    /// Searches for fields without a known path, and stores their paths.
    #[cold]
    fn look(&mut self, slot: usize, line: &[u8], fields: &mut Fields) {
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return };
        for name in &self.slots[slot].names {
            if let Some((path, value)) = find(&object, name) {
                fields.set(slot, text(value).as_bytes());
                self.paths[slot] = Some(path);
                return;
            }
        }
    }
}

/// A field by its name, which may be a path with dots, or a name that has dots.
fn find<'a>(object: &'a Map<String, Value>, name: &str) -> Option<(Path, &'a Value)> {
    let scalar = |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    if let Some((key, value)) = object.iter().find(|(key, value)| same(key, name) && scalar(value)) {
        return Some((vec![key.clone()], value));
    }
    name.match_indices('.').find_map(|(at, _)| {
        let (outer, inner) = (&name[..at], &name[at + 1..]);
        let (key, Value::Object(within)) = object.iter().find(|(key, _)| same(key, outer))? else { return None };
        let (mut path, value) = find(within, inner)?;
        path.insert(0, key.clone());
        Some((path, value))
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Picks the fields of an object whose paths were found. `active` has a bit for each slot whose path leads here.
struct Pick<'a> {
    paths: &'a [Option<Path>],
    active: u64,
    depth: usize,
    fields: &'a mut Fields,
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Pick { paths, active, depth, fields } = self;
        while let Some(hits) = map.next_key_seed(Name { paths, active, depth })? {
            if hits == 0 {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Pick { paths, active: hits, depth: depth + 1, fields: &mut *fields })?;
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.set(text.as_bytes());
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.set(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.set(value.to_string().as_bytes());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.set(value.to_string().as_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.set(value.to_string().as_bytes());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl Pick<'_> {
    fn set(self, text: &[u8]) {
        for (slot, path) in self.paths.iter().enumerate().take(64) {
            if self.active >> slot & 1 == 1 && path.as_ref().is_some_and(|path| path.len() == self.depth) {
                self.fields.set(slot, text);
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

/// A name within an object: which slots' paths go on with it.
struct Name<'a> {
    paths: &'a [Option<Path>],
    active: u64,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = u64;

    fn deserialize<D: serde::Deserializer<'de>>(self, name: D) -> Result<u64, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<u64, E> {
        let goes =
            |path: &Option<Path>| path.as_ref().and_then(|path| path.get(self.depth)).is_some_and(|part| part == name);
        let hits = self.paths.iter().enumerate().take(64).filter(|(_, path)| goes(path));
        Ok(hits.fold(0, |hits, (slot, _)| hits | 1 << slot) & self.active)
    }
}
