//! The interface for JavaScript. It only converts values.

use crate::options::Options;
use crate::run::{self, Replayed};
use std::io::{self, Read, Seek, SeekFrom, Write};
use tsify::{Ts, Tsify};
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};

#[wasm_bindgen(typescript_custom_section)]
const SPOOL: &str = r"
/** Where the host keeps the requests between the passes over them: bytes by their offset, such as a file's. */
export interface Spool {
  /** Fills `into` with the bytes from `at` on, and returns their number: less than there is room for only at the end. */
  read(at: number, into: Uint8Array): number;
  /** Writes all of `bytes` from `at` on. `bytes` is valid during the call only. */
  write(at: number, bytes: Uint8Array): void;
}
";

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Spool")]
    pub type Spool;
    #[wasm_bindgen(method, catch)]
    fn read(this: &Spool, at: f64, into: &mut [u8]) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn write(this: &Spool, at: f64, bytes: &[u8]) -> Result<(), JsValue>;
}

/// The host's spool as a file.
struct Stream {
    spool: Spool,
    at: u64,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.spool.read(self.at as f64, into).map_err(failed)? as usize;
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spool.write(self.at as f64, bytes).map_err(failed)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Stream {
    /// Seeks only from the start of the spool, which is all that a pass over the requests needs.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}

fn failed(error: JsValue) -> io::Error {
    let message = js_sys::Error::from(error).message();
    io::Error::other(String::from(message))
}

/// A replay under way: `begin` for each file, `push` for each of its chunks, `end`; then `finish`, which also frees it.
/// A call that throws ends the replay: then call `free`.
#[wasm_bindgen]
pub struct Replay(run::Replay);

#[wasm_bindgen]
impl Replay {
    /// Prepares a replay. `secret` is two random numbers of 64 bits. Throws if an option or a limit is not legal.
    #[wasm_bindgen(constructor)]
    pub fn new(options: Ts<Options>, secret: &[u64], spool: Spool) -> Result<Replay, JsError> {
        let secret = secret.try_into().map_err(|_| JsError::new("the secret must be two 64-bit numbers"))?;
        let spool = Stream { spool, at: 0 };
        Ok(Replay(run::Replay::new(&options.to_rust()?, secret, Box::new(spool))?))
    }

    /// Begins a file; `name` is for messages.
    pub fn begin(&mut self, name: &str) -> Result<(), JsError> {
        Ok(self.0.begin(name)?)
    }

    /// Decides the requests of the next bytes of the file, unpacked, in chunks of any size.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), JsError> {
        Ok(self.0.push(chunk)?)
    }

    /// Ends the file: its last line needs no end of line, and a short file is read here.
    pub fn end(&mut self) -> Result<(), JsError> {
        Ok(self.0.end()?)
    }

    /// Requests so far.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.0.requests() as f64
    }

    /// Ends the last file, and reads the requests again for the smallest capacity and for proposals.
    pub fn finish(self) -> Result<Ts<Replayed>, JsError> {
        Ok(self.0.finish()?.into_ts()?)
    }
}
