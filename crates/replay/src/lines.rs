//! The lines of a log that arrives in chunks, without a copy of each, in bounded memory.

use memchr::memchr;

/// Longest line in bytes; a longer one is skipped without being held.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Start of the next line, and the position up to which its end has been searched.
    from: usize,
    searched: usize,
    too_long: bool,
    ended: bool,
}

impl Lines {
    /// Appends what the host read. Call [`Lines::next`] until it returns `None` before the next chunk: that bounds the
    /// memory to the longest line and a chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.from);
        self.searched -= self.from;
        self.from = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Ends the input: the rest is the last line.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Skips the byte order mark that editors and PowerShell write at the start of a file.
    pub(crate) fn skip_mark(&mut self) {
        if self.head().starts_with(b"\xef\xbb\xbf") {
            self.from += 3;
            self.searched = self.searched.max(self.from);
        }
    }

    /// The unread bytes, by which a format is recognised.
    pub(crate) fn head(&self) -> &[u8] {
        &self.buffer[self.from..]
    }

    /// Whether the next line's end is not read yet, or the line is too long to be held.
    pub(crate) fn is_cut(&self) -> bool {
        self.too_long || !self.ended && memchr(b'\n', self.head()).is_none()
    }

    /// Whether no more chunks come.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// The next line without its end, or why it is not held; `None` if it needs another chunk, or if no line is left.
    pub(crate) fn next(&mut self) -> Option<Result<&[u8], String>> {
        let line = match memchr(b'\n', &self.buffer[self.searched..]) {
            Some(at) => {
                let line = self.from..self.searched + at;
                self.from = line.end + 1;
                line
            }
            None if self.ended && (self.too_long || self.from < self.buffer.len()) => {
                let line = self.from..self.buffer.len();
                self.from = line.end;
                line
            }
            None => {
                self.too_long |= self.buffer.len() - self.from > MAX_LINE_BYTES;
                if self.too_long {
                    self.from = self.buffer.len();
                }
                self.searched = self.buffer.len();
                return None;
            }
        };
        self.searched = self.from;
        if std::mem::take(&mut self.too_long) {
            return Some(Err(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        let line = &self.buffer[line];
        Some(Ok(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8], chunk: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in text.chunks(chunk).map(Some).chain([None]) {
            match chunk {
                Some(bytes) => lines.push(bytes),
                None => lines.end(),
            }
            while let Some(line) = lines.next() {
                found.push(line.ok().map(<[u8]>::to_vec));
            }
            assert!(lines.buffer.len() <= MAX_LINE_BYTES + 2 * chunk.map_or(0, <[u8]>::len).max(100_000));
        }
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let mut text = vec![b'a'; 3 * MAX_LINE_BYTES];
        text.extend_from_slice(b"\nb\r\nc");
        assert_eq!(all(&text, 100_000), [None, Some(b"b".to_vec()), Some(b"c".to_vec())]);
    }

    #[test]
    fn a_line_of_the_greatest_length_is_read_if_its_end_is_in_a_later_chunk() {
        let (short, longest) = (vec![b'a'; MAX_LINE_BYTES / 2], vec![b'b'; MAX_LINE_BYTES]);
        let text = [&short[..], b"\n", &longest, b"\n"].concat();
        assert_eq!(all(&text, text.len() - 1), [Some(short), Some(longest.clone())]);
        let longer = [&longest[..], b"b\nc"].concat();
        assert_eq!(all(&longer, MAX_LINE_BYTES + 1), [None, Some(b"c".to_vec())]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_in_chunks_of_any_size(parts in prop::collection::vec("[a-z]{0,5}", 0..30), chunk in 1usize..40) {
            let text = parts.join("\n");
            let mut expected: Vec<_> = text.split('\n').map(|line| Some(line.as_bytes().to_vec())).collect();
            if expected.last() == Some(&Some(vec![])) {
                expected.pop();
            }
            prop_assert_eq!(all(text.as_bytes(), chunk), expected);
        }
    }
}
