//! The requests as they were read, in a temporary file: stdin cannot be read twice, and this is read faster than a log.

use crate::error::Error;
use crate::fields::Record;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::ControlFlow;

const BUFFER: usize = 1 << 18;

/// Writes the requests down.
pub(crate) struct Writer {
    file: BufWriter<File>,
    requests: u64,
}

/// What was written down; as often as it is asked for.
pub(crate) struct Trace {
    file: File,
    counts: usize,
    keys: usize,
    pub(crate) requests: u64,
}

impl Writer {
    pub(crate) fn new() -> Result<Writer, Error> {
        let file = tempfile::tempfile().map_err(Error::Trace)?;
        Ok(Writer { file: BufWriter::with_capacity(BUFFER, file), requests: 0 })
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.requests += 1;
        self.put(record).map_err(Error::Trace)
    }

    fn put(&mut self, record: &Record) -> io::Result<()> {
        self.file.write_all(&record.now.to_le_bytes())?;
        for count in &record.counts {
            self.file.write_all(&count.to_le_bytes())?;
        }
        for key in &record.keys {
            // A key has at most 1024 bytes.
            self.file.write_all(&(key.len() as u16).to_le_bytes())?;
            self.file.write_all(key)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self, counts: usize, keys: usize) -> Result<Trace, Error> {
        let requests = self.requests;
        let file = self.file.into_inner().map_err(|error| Error::Trace(error.into_error()))?;
        Ok(Trace { file, counts, keys, requests })
    }
}

impl Trace {
    /// Hands out the requests in their order, until it is told to stop.
    pub(crate) fn each(&mut self, mut visit: impl FnMut(&Record) -> ControlFlow<()>) -> Result<(), Error> {
        self.file.rewind().map_err(Error::Trace)?;
        let mut file = BufReader::with_capacity(BUFFER, &self.file);
        let mut record =
            Record { counts: vec![0.0; self.counts], keys: vec![Vec::new(); self.keys], ..Record::default() };
        for _ in 0..self.requests {
            get(&mut file, &mut record).map_err(Error::Trace)?;
            if visit(&record).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn get(file: &mut impl Read, record: &mut Record) -> io::Result<()> {
    record.now = number(file)?;
    for count in &mut record.counts {
        *count = number(file)?;
    }
    for key in &mut record.keys {
        let mut length = [0; 2];
        file.read_exact(&mut length)?;
        key.resize(usize::from(u16::from_le_bytes(length)), 0);
        file.read_exact(key)?;
    }
    Ok(())
}

fn number(file: &mut impl Read) -> io::Result<f64> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes)?;
    Ok(f64::from_le_bytes(bytes))
}
