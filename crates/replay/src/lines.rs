//! A reader's lines, without a copy of each, in bounded memory.

use memchr::memchr;
use std::io::{self, Read};

/// A longer line is no line of a log; it is passed over without being held.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;
const CHUNK: usize = 1 << 18;

/// What stands between two ends of line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    from: usize,
    filled: usize,
    ended: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: vec![0; CHUNK], from: 0, filled: 0, ended: false }
    }

    /// What the first read brings, at least one line of it: what a format is told by.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        while !self.ended && self.filled < CHUNK.min(self.buffer.len()) {
            self.fill()?;
        }
        Ok(&self.buffer[self.from..self.filled])
    }

    /// The next line, without its end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.from;
        let mut too_long = false;
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[searched..self.filled]) {
                let line = self.from..searched + at;
                self.from = searched + at + 1;
                return Ok(Some(if too_long { Line::TooLong } else { Line::Text(trimmed(&self.buffer[line])) }));
            }
            if self.filled - self.from > MAX_LINE_BYTES {
                too_long = true;
                self.from = self.filled;
            }
            if self.ended {
                let line = self.from..self.filled;
                self.from = self.filled;
                return Ok(match (too_long, line.is_empty()) {
                    (true, _) => Some(Line::TooLong),
                    (false, true) => None,
                    (false, false) => Some(Line::Text(trimmed(&self.buffer[line]))),
                });
            }
            let behind = self.filled - self.from;
            self.fill()?;
            searched = self.from + behind;
        }
    }

    /// Reads once more, behind what is not yet used. That moves to the front first.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.from..self.filled, 0);
        self.filled -= self.from;
        self.from = 0;
        if self.buffer.len() - self.filled < CHUNK / 2 {
            self.buffer.resize(self.buffer.len() + CHUNK, 0);
        }
        let count = self.reader.read(&mut self.buffer[self.filled..])?;
        self.filled += count;
        self.ended = count == 0;
        Ok(())
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Brings as little at a time as it is told.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(text: &[u8], drip: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Drip(text, drip));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong => None,
            });
        }
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let mut text = vec![b'a'; 3 * MAX_LINE_BYTES];
        text.extend_from_slice(b"\nb\r\nc");
        assert_eq!(all(&text, 100_000), [None, Some(b"b".to_vec()), Some(b"c".to_vec())]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(parts in prop::collection::vec("[a-z]{0,5}", 0..30), drip in 1usize..40) {
            let text = parts.join("\n");
            let mut expected: Vec<_> = text.split('\n').map(|line| Some(line.as_bytes().to_vec())).collect();
            if expected.last() == Some(&Some(vec![])) {
                expected.pop();
            }
            prop_assert_eq!(all(text.as_bytes(), drip), expected);
        }
    }
}
