//! Splits files, one after another, into their requests.

use crate::error::{Error, shown};
use crate::fields::{Fields, Record, Wanted};
use crate::format::{Format, Row, Splitter, detect, refuse_returns};
use crate::lines::Lines;
use crate::report::{BadLine, Read};
use crate::run::Sink;

/// Bad lines that the report includes.
const SHOWN: usize = 5;
/// Bytes of a file that its format is recognised by.
const HEAD: usize = 1 << 18;

pub(crate) struct Reader {
    wanted: Wanted,
    format: Option<Format>,
    read: Read,
    file: Option<File>,
    sink: Sink,
}

/// The file that is being read.
#[derive(Default)]
struct File {
    name: String,
    lines: Lines,
    splitter: Option<Splitter>,
    /// Whether the next line has the column names.
    names: bool,
    /// Whether the row of the last line continues on the next.
    continues: bool,
    number: u64,
    /// The line on which the row began.
    row: u64,
    fields: Fields,
    record: Record,
}

impl Reader {
    pub(crate) fn new(wanted: Wanted, format: Option<Format>, sink: Sink) -> Reader {
        let read = Read { whole_seconds: true, from: f64::INFINITY, ..Read::default() };
        Reader { wanted, format, read, file: None, sink }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.read.requests
    }

    /// Begins a file, and ends the previous one.
    pub(crate) fn begin(&mut self, name: &str) -> Result<(), Error> {
        self.end_file()?;
        self.file = Some(File { name: name.to_owned(), ..File::default() });
        Ok(())
    }

    /// Reads the lines that end in this chunk of the file.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let Some(mut file) = self.file.take() else {
            return Err(Error("a chunk belongs to a file: call `begin` before `push`".to_owned()));
        };
        file.lines.push(chunk);
        if file.splitter.is_some() || file.lines.head().len() >= HEAD {
            self.split_lines(&mut file)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Summary of all files, and notes on what their requests lacked; an error if there is no request.
    pub(crate) fn end(mut self) -> Result<(Read, Vec<String>, Sink), Error> {
        self.end_file()?;
        let Reader { wanted, read, sink, .. } = self;
        if read.requests == 0 {
            let why = match read.first_bad.first() {
                None => "no lines".to_owned(),
                Some(BadLine { file, line, why, text }) => {
                    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
                    format!("none of {} lines could be used. The first: {file}:{line}: {why}{text}", read.lines)
                }
            };
            return Err(Error(format!("there is nothing to replay: {why}")));
        }
        Ok((read, wanted.notes(), sink))
    }

    /// Ends the file, if there is one.
    pub(crate) fn end_file(&mut self) -> Result<(), Error> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.lines.end();
        self.split_lines(&mut file)?;
        if file.continues {
            // The row has all lines of the file from there on.
            let more = file.number - file.row;
            self.read.lines += more;
            self.read.bad += more;
            self.bad(&file.name, file.row, b"", "a quote is never closed".to_owned());
        }
        Ok(())
    }

    /// Sets the file's splitter, or skips the lines so far if none of them shows the format.
    fn detect(&mut self, file: &mut File) -> Result<(), Error> {
        file.lines.skip_mark();
        refuse_returns(&file.name, file.lines.head())?;
        // A line that is longer than the head, or than any may be, does not show the format.
        while file.lines.is_cut() {
            let Some(Err(why)) = file.lines.next() else { return Ok(()) };
            file.number += 1;
            self.read.lines += 1;
            self.bad(&file.name, file.number, b"", why);
        }
        if file.lines.head().len() < HEAD && !file.lines.ended() {
            return Ok(());
        }
        let Some((format, splitter)) = detect(self.format, &file.name, file.lines.head(), &mut self.wanted)? else {
            while file.lines.next().is_some() {
                file.number += 1;
            }
            return Ok(());
        };
        self.read.formats.push((file.name.clone(), format.name().to_owned()));
        file.names = splitter.has_names();
        file.splitter = Some(splitter);
        Ok(())
    }

    fn split_lines(&mut self, file: &mut File) -> Result<(), Error> {
        if file.splitter.is_none() {
            self.detect(file)?;
        }
        let File { name, lines, splitter: Some(splitter), names, continues, number, row, fields, record } = file else {
            return Ok(());
        };
        while let Some(line) = lines.next() {
            *number += 1;
            let is_empty = matches!(line, Ok(b"")) && !*continues;
            if is_empty || std::mem::take(names) {
                continue;
            }
            if !*continues {
                self.read.lines += 1;
                *row = *number;
            }
            let text = line.as_ref().copied().unwrap_or_default();
            let split = match line {
                Ok(text) => self.split(splitter, text, fields),
                Err(why) => {
                    splitter.restart();
                    Err(why)
                }
            };
            *continues = matches!(split, Ok(Row::Continues));
            if *continues {
                continue;
            }
            match split.and_then(|_| self.wanted.record(fields, record)) {
                Ok(()) => {
                    self.note(record);
                    self.sink.visit(record)?;
                }
                Err(why) => self.bad(name, *number, text, why),
            }
        }
        Ok(())
    }

    #[inline]
    fn split(&self, splitter: &mut Splitter, text: &[u8], fields: &mut Fields) -> Result<Row, String> {
        fields.clear(self.wanted.slots.len());
        splitter.split(text, fields)
    }

    #[inline]
    fn note(&mut self, record: &Record) {
        let read = &mut self.read;
        read.requests += 1;
        read.whole_seconds &= (record.now as u64).is_multiple_of(1000);
        read.from = read.from.min(record.now);
        if record.now < read.to {
            read.out_of_order += 1;
            read.farthest_back = read.farthest_back.max(read.to - record.now);
        } else {
            read.to = record.now;
        }
    }

    #[cold]
    fn bad(&mut self, file: &str, line: u64, text: &[u8], why: String) {
        self.read.bad += 1;
        if self.read.first_bad.len() < SHOWN {
            self.read.first_bad.push(BadLine { file: file.to_owned(), line, text: shown(text), why });
        }
    }
}
