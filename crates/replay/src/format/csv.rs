//! Rows under a line of column names (RFC 4180, with comma, semicolon or tab).

use super::Row;
use crate::fields::{Fields, Wanted, named, same};
use crate::lines::MAX_LINE_BYTES;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

pub(crate) struct Splitter {
    reader: Reader,
    /// Each slot's column.
    columns: Vec<Option<usize>>,
    names: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    written: usize,
    found: usize,
}

impl Splitter {
    pub(crate) fn new(first: &[u8], wanted: &Wanted) -> Result<Splitter, String> {
        let count = |c: u8| first.iter().filter(|d| **d == c).count();
        let delimiter = [b'\t', b';', b','].into_iter().max_by_key(|c| count(*c)).unwrap_or(b',');
        let mut splitter = Splitter {
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            columns: vec![],
            names: 0,
            text: vec![0; 4096],
            ends: vec![0; 64],
            written: 0,
            found: 0,
        };
        splitter.row(first)?;
        let names: Vec<String> =
            (0..splitter.found).map(|i| String::from_utf8_lossy(splitter.column(i)).trim().to_owned()).collect();
        for slot in &wanted.slots {
            let column = slot.names.iter().find_map(|wanted| names.iter().position(|name| same(name, wanted)));
            if column.is_none() && !slot.optional {
                let has = crate::error::shown(names.join(", ").as_bytes());
                return Err(format!("no column {}; the first line has {has}", named(slot)));
            }
            splitter.columns.push(column);
        }
        splitter.names = names.len();
        splitter.restart();
        Ok(splitter)
    }

    pub(crate) fn split(&mut self, line: &[u8], fields: &mut Fields) -> Result<Row, String> {
        let row = self.row(line);
        if row == Ok(Row::Continues) {
            return row;
        }
        let row = row.and_then(|row| {
            if self.found != self.names {
                return Err(format!("{} columns, not {}", self.found, self.names));
            }
            for (slot, column) in self.columns.iter().enumerate() {
                if let Some(column) = column {
                    fields.set(slot, self.column(*column));
                }
            }
            Ok(row)
        });
        self.restart();
        row
    }

    pub(crate) fn restart(&mut self) {
        self.reader.reset();
        (self.written, self.found) = (0, 0);
    }

    fn column(&self, i: usize) -> &[u8] {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[from..self.ends[i]]
    }

    /// Reads the next line of the row.
    fn row(&mut self, line: &[u8]) -> Result<Row, String> {
        for mut input in [line, b"\n"] {
            loop {
                let (text, ends) = (&mut self.text[self.written..], &mut self.ends[self.found..]);
                let (result, read, written, ended) = self.reader.read_record(input, text, ends);
                input = &input[read..];
                self.written += written;
                self.found += ended;
                match result {
                    ReadRecordResult::InputEmpty => break,
                    ReadRecordResult::OutputFull if self.text.len() >= MAX_LINE_BYTES => {
                        return Err("a row that is too long: is a quote missing?".to_owned());
                    }
                    ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                    ReadRecordResult::OutputEndsFull if self.ends.len() >= 65_536 => {
                        return Err("more than 65536 columns".to_owned());
                    }
                    ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                    ReadRecordResult::Record | ReadRecordResult::End => return Ok(Row::Complete),
                }
            }
        }
        Ok(Row::Continues)
    }
}
