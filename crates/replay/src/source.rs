//! Where lines come from: files, gzip'd or not, and stdin.

use crate::error::Error;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Stands for stdin in a list of files.
pub const STDIN: &str = "-";
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Counts what was read, before it is unpacked: what progress is told in.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                // A shell may hand over a pipe that does not block, and nothing else here could wait for it.
                Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(2)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.bytes.fetch_add(count as u64, Ordering::Relaxed);
                    return Ok(count);
                }
                error => return error,
            }
        }
    }
}

/// Bytes of all files together; `None` where one of them has no size to be known.
pub(crate) fn total(files: &[String]) -> Option<u64> {
    let size = |file: &String| {
        if file == STDIN {
            return None;
        }
        let about = std::fs::metadata(file).ok()?;
        about.is_file().then_some(about.len())
    };
    files.iter().map(size).sum()
}

/// Opens a file (`-`: stdin), unpacked where its first bytes say that it is gzip'd, whatever its name.
pub(crate) fn open(file: &str, bytes: Arc<AtomicU64>) -> Result<Box<dyn Read>, Error> {
    let failed = |cause| Error::Read { file: file.to_owned(), cause };
    let inner: Box<dyn Read> = if file == STDIN {
        Box::new(io::stdin())
    } else {
        let opened = File::open(file).map_err(failed)?;
        // Opening a folder succeeds on Unix; only reading it says what is wrong.
        if opened.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::Error::new(ErrorKind::IsADirectory, "it is a folder, not a file")));
        }
        Box::new(opened)
    };
    unpacked(Counted { inner, bytes }).map_err(failed)
}

fn unpacked<R: Read + 'static>(mut reader: R) -> io::Result<Box<dyn Read>> {
    let mut first = Vec::with_capacity(GZIP.len());
    (&mut reader).take(GZIP.len() as u64).read_to_end(&mut first)?;
    let packed = first == GZIP;
    let whole: Chain<Cursor<Vec<u8>>, R> = Cursor::new(first).chain(reader);
    Ok(if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}
