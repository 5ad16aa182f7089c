use std::io::{self, BufRead, BufReader, Read};

/// Maximum length of a line in bytes.
pub(crate) const MAX_LINE_BYTES: u64 = 1 << 20;

/// The lines of a file, one at a time.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    /// The next call of `advance` stays at this line.
    is_kept: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader), line: Vec::new(), number: 0, is_kept: false }
    }

    /// Moves to the next line. `false`: the file has ended. Of a line that is too long, it keeps the beginning.
    pub(crate) fn advance(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.is_kept) {
            return Ok(true);
        }
        self.line.clear();
        self.reader.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut self.line)?;
        if self.is_too_long() {
            self.reader.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(!self.line.is_empty())
    }

    /// Stays at this line for the next call of `advance`.
    pub(crate) const fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Number of the line, from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The line, with its end.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.line
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.line.len() as u64 > MAX_LINE_BYTES && !self.is_terminated()
    }

    /// Whether the line has an end. The last line of a file that was cut may not have one.
    pub(crate) fn is_terminated(&self) -> bool {
        self.line.last() == Some(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_one_by_one_with_their_numbers() {
        let mut lines = Lines::new(&b"a\n\nbc"[..]);
        for (number, bytes, is_terminated) in [(1, &b"a\n"[..], true), (2, b"\n", true), (3, b"bc", false)] {
            assert!(lines.advance().unwrap());
            assert_eq!((lines.number(), lines.bytes(), lines.is_terminated()), (number, bytes, is_terminated));
            lines.keep();
            assert!(lines.advance().unwrap());
            assert_eq!((lines.number(), lines.bytes()), (number, bytes));
        }
        assert!(!lines.advance().unwrap());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_in_constant_memory() {
        let long = io::repeat(b'x').take(50 * MAX_LINE_BYTES);
        let mut lines = Lines::new(long.chain(&b"\nnext\n"[..]));
        assert!(lines.advance().unwrap() && lines.is_too_long());
        assert!(lines.line.capacity() as u64 <= 2 * MAX_LINE_BYTES + 2);
        assert!(lines.advance().unwrap() && !lines.is_too_long());
        assert_eq!((lines.number(), lines.bytes()), (2, &b"next\n"[..]));
    }

    #[test]
    fn a_line_of_the_maximum_length_is_not_too_long_with_or_without_its_end() {
        for (len, end, is_too_long) in [(1 << 20, "", false), (1 << 20, "\n", false), ((1 << 20) + 1, "", true)] {
            let mut lines = Lines::new(io::repeat(b'x').take(len).chain(end.as_bytes()));
            assert!(lines.advance().unwrap());
            assert_eq!(lines.is_too_long(), is_too_long, "{len} {end:?}");
        }
    }
}
