//! A JSON object on each line.
//!
//! The path of a field is found on the first line that has it, by its names in any case. From then on the reader skips
//! everything else.

use super::Row;
use crate::fields::{Fields, Slot, Wanted, same};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// The path of a field: names from the outside in.
type Path = Vec<String>;

pub(crate) struct Splitter {
    slots: Vec<Slot>,
    /// The slots' paths, as far as they are known.
    paths: Vec<Option<Path>>,
    /// All known paths.
    known: Names,
}

impl Splitter {
    pub(crate) fn new(wanted: &Wanted) -> Splitter {
        let slots = wanted.slots.clone();
        Splitter { paths: vec![None; slots.len()], slots, known: Names::default() }
    }

    pub(crate) fn split(&mut self, line: &[u8], fields: &mut Fields) -> Result<Row, String> {
        let mut reader = serde_json::Deserializer::from_slice(line);
        let read = reader.deserialize_map(Pick { names: &self.known, fields }).and_then(|()| reader.end());
        read.map_err(|error| format!("not a JSON object: {error}"))?;
        if (0..self.slots.len()).any(|slot| fields.get(slot).is_none()) {
            self.look(line, fields);
        }
        Ok(Row::Complete)
    }

    /// Searches the line for the fields that their paths did not lead to, and stores the paths of those it has.
    #[cold]
    fn look(&mut self, line: &[u8], fields: &mut Fields) {
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return };
        let mut learnt = false;
        for (slot, wanted) in self.slots.iter().enumerate() {
            if fields.get(slot).is_none()
                && let Some((path, value)) = wanted.names.iter().find_map(|name| find(&object, name))
                && let Some(text) = text(value)
            {
                fields.set(slot, text.as_bytes());
                self.paths[slot] = Some(path);
                learnt = true;
            }
        }
        if learnt {
            self.known = Names::default();
            for (slot, path) in self.paths.iter().enumerate() {
                if let Some(path) = path {
                    self.known.add(path, slot);
                }
            }
        }
    }
}

/// The names of an object that are on the way to a field, and the slots of the fields that end here.
#[derive(Default)]
struct Names {
    slots: Vec<usize>,
    inner: Vec<(String, Names)>,
}

impl Names {
    fn add(&mut self, path: &[String], slot: usize) {
        let Some((name, rest)) = path.split_first() else { return self.slots.push(slot) };
        let at = self.inner.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.inner.push((name.clone(), Names::default()));
            self.inner.len() - 1
        });
        self.inner[at].1.add(rest, slot);
    }
}

/// A field by its name, which may be a path with dots, or a name that has dots.
fn find<'a>(object: &'a Map<String, Value>, name: &str) -> Option<(Path, &'a Value)> {
    if let Some((key, value)) = object.iter().find(|(key, value)| same(key, name) && text(value).is_some()) {
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

/// A value as text, if it has one. A list of texts is joined as a server joins a repeated header: Caddy logs each header as
/// a list.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(value.to_string()),
        // As `visit_f64` writes it: 3 for 3.0.
        Value::Number(number) if number.is_f64() => number.as_f64().map(|number| number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(list) if !list.is_empty() => {
            let texts = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
            Some(texts.join(", "))
        }
        Value::Array(_) | Value::Object(_) | Value::Null => None,
    }
}

/// Reads a value on the way to fields, and skips all else in it.
struct Pick<'n, 'f> {
    names: &'n Names,
    fields: &'f mut Fields,
}

impl Pick<'_, '_> {
    fn set(self, text: &[u8]) {
        for slot in &self.names.slots {
            self.fields.set(*slot, text);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Pick<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            match self.names.inner.iter().find(|(known, _)| *known == name) {
                Some((_, names)) => map.next_value_seed(Pick { names, fields: &mut *self.fields })?,
                None => drop(map.next_value::<IgnoredAny>()?),
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
        if self.names.slots.is_empty() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<Value>()? {
            values.push(value);
        }
        if let Some(text) = text(&Value::Array(values)) {
            self.set(text.as_bytes());
        }
        Ok(())
    }
}

/// A name within an object, borrowed from the line if it has no escapes.
#[derive(Deserialize)]
struct Name<'l>(#[serde(borrow)] Cow<'l, str>);

#[cfg(test)]
mod tests;
