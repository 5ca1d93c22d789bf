//! Reads files one after another, and hands out their requests.

use crate::error::{Error, shown};
use crate::fields::{Fields, Record, Wanted};
use crate::format::{Format, Split, Splitter, tell};
use crate::lines::{Line, Lines, MAX_LINE_BYTES};
use crate::report::{BadLine, Read};
use crate::source;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bad lines that are shown.
const SHOWN: usize = 5;
/// Lines between two reports of progress.
const LINES: u64 = 50_000;

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Bytes read, before they are unpacked.
    pub bytes: u64,
    /// All bytes; none where stdin is read.
    pub total: Option<u64>,
    /// Requests so far.
    pub requests: u64,
    /// Whether the log has been read, and only what is to be found out by asking again is missing.
    pub read: bool,
}

pub(crate) struct Reader<'a> {
    pub(crate) wanted: Wanted,
    pub(crate) format: Option<Format>,
    pub(crate) told: Read,
    pub(crate) progress: &'a mut dyn FnMut(Progress),
}

impl Reader<'_> {
    pub(crate) fn read(
        &mut self,
        files: &[String],
        mut visit: impl FnMut(&Record) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (bytes, total) = (Arc::new(AtomicU64::new(0)), source::total(files));
        // A file that is missing is told before any is read.
        let sources = files.iter().map(|file| source::open(file, Arc::clone(&bytes))).collect::<Result<Vec<_>, _>>()?;
        self.told.whole_seconds = true;
        self.told.from = f64::INFINITY;
        for (file, source) in files.iter().zip(sources) {
            let step = |requests| Progress { bytes: bytes.load(Ordering::Relaxed), total, requests, read: false };
            self.file(file, Lines::new(source), &step, &mut visit)?;
        }
        if self.told.requests == 0 {
            let first = self.told.first_bad.first();
            let first = first.map(|bad| format!("{}:{}: {}: {}", bad.file, bad.line, bad.why, bad.text));
            return Err(Error::NoRequests { lines: self.told.lines, first });
        }
        Ok(())
    }

    fn file(
        &mut self,
        file: &str,
        mut lines: Lines<Box<dyn std::io::Read>>,
        step: &dyn Fn(u64) -> Progress,
        visit: &mut dyn FnMut(&Record) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let failed = |cause| Error::Read { file: file.to_owned(), cause };
        let head = lines.peek().map_err(failed)?;
        let Some((format, mut splitter)) = tell(self.format, file, head, &mut self.wanted)? else { return Ok(()) };
        self.told.formats.push((file.to_owned(), format.name().to_owned()));
        let mut names = splitter.has_names();
        let (mut fields, mut record) = (Fields::default(), Record::default());
        let (mut number, mut goes) = (0, false);
        while let Some(line) = lines.next().map_err(failed)? {
            number += 1;
            if number % LINES == 0 {
                (self.progress)(step(self.told.requests));
            }
            let text = match line {
                Line::Text(text) => text,
                Line::TooLong => b"",
            };
            if line != Line::TooLong && text.is_empty() && !goes {
                continue;
            }
            if std::mem::take(&mut names) {
                continue;
            }
            self.told.lines += u64::from(!goes);
            let whole = match line {
                Line::TooLong => Err(format!("longer than {MAX_LINE_BYTES} bytes")),
                Line::Text(text) => self.split(&mut splitter, text, &mut fields),
            };
            goes = matches!(whole, Ok(Split::Goes));
            if goes {
                continue;
            }
            match whole.and_then(|_| self.wanted.record(&fields, &mut record)) {
                Ok(()) => {
                    self.note(&record);
                    visit(&record)?;
                }
                Err(why) => self.bad(file, number, text, why),
            }
        }
        if goes {
            self.bad(file, number, b"", "a quote is never closed".to_owned());
        }
        (self.progress)(step(self.told.requests));
        Ok(())
    }

    #[inline]
    fn split(&self, splitter: &mut Splitter, text: &[u8], fields: &mut Fields) -> Result<Split, String> {
        fields.clear(self.wanted.slots.len());
        splitter.split(text, fields)
    }

    #[inline]
    fn note(&mut self, record: &Record) {
        let told = &mut self.told;
        told.requests += 1;
        told.whole_seconds &= (record.now as u64).is_multiple_of(1000);
        told.from = told.from.min(record.now);
        if record.now < told.to {
            told.out_of_order += 1;
            told.farthest_back = told.farthest_back.max(told.to - record.now);
        } else {
            told.to = record.now;
        }
    }

    #[cold]
    fn bad(&mut self, file: &str, line: u64, text: &[u8], why: String) {
        self.told.bad += 1;
        if self.told.first_bad.len() < SHOWN {
            self.told.first_bad.push(BadLine { file: file.to_owned(), line, text: shown(text), why });
        }
    }
}
