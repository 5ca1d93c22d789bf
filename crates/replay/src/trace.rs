//! The requests of a log, in a spool of the host: later passes read the spool, which is faster than the log.

use crate::error::Error;
use crate::fields::Record;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::ControlFlow;

const BUFFER: usize = 1 << 18;

/// Where a replay keeps the requests between its passes: a temporary file, or memory for a short log. It takes about 30
/// bytes for a request.
pub trait Spool: Read + Write + Seek {}

impl<T: Read + Write + Seek> Spool for T {}

/// Appends requests to the spool.
pub(crate) struct Writer {
    spool: BufWriter<Box<dyn Spool>>,
    counts: usize,
    keys: usize,
    requests: u64,
}

/// The requests of a spool, to be read any number of times.
pub(crate) struct Trace {
    spool: Box<dyn Spool>,
    counts: usize,
    keys: usize,
    pub(crate) requests: u64,
}

impl Writer {
    /// Each request has this many counts and keys.
    pub(crate) fn new(spool: Box<dyn Spool>, counts: usize, keys: usize) -> Writer {
        Writer { spool: BufWriter::with_capacity(BUFFER, spool), counts, keys, requests: 0 }
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.requests += 1;
        self.spool.write_all(&record.now.to_le_bytes())?;
        for count in &record.counts {
            self.spool.write_all(&count.to_le_bytes())?;
        }
        for key in &record.keys {
            // A key has at most 1024 bytes.
            self.spool.write_all(&(key.len() as u16).to_le_bytes())?;
            self.spool.write_all(key)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Trace, Error> {
        let Writer { spool, counts, keys, requests } = self;
        let spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Trace { spool, counts, keys, requests })
    }
}

impl Trace {
    /// Visits the requests in their order, until `visit` breaks.
    pub(crate) fn each(&mut self, mut visit: impl FnMut(&Record) -> ControlFlow<()>) -> Result<(), Error> {
        self.spool.rewind()?;
        let mut spool = BufReader::with_capacity(BUFFER, &mut self.spool);
        let mut record =
            Record { counts: vec![0.0; self.counts], keys: vec![Vec::new(); self.keys], ..Record::default() };
        for _ in 0..self.requests {
            get(&mut spool, &mut record)?;
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
