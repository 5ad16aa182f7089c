//! The lines of an import.

use std::io;

use animal_store_domain::NewPet;
use animal_store_pet_json::{Subject, from_slice};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Longest line in bytes: a pet has at most a name of 255 characters, each with at most 12 bytes in JSON.
const MAX_BYTES: usize = 16 * 1024;

/// The beginning of a file of some editors.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Number of bytes that are read at once.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// The lines of the input.
pub(super) struct Lines {
    input: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    number: u64,
}

impl Lines {
    pub(super) fn new(input: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, input),
            number: 0,
        }
    }

    /// Returns the number of the last line that was read, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether the input begins as a JSON array. Reads no line.
    pub(super) async fn is_array(&mut self) -> io::Result<bool> {
        let start = self.input.fill_buf().await?;
        let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
        Ok(start.trim_ascii_start().starts_with(b"["))
    }

    /// Returns the pet of the next line that is not blank, or every reason why it contains no valid pet.
    pub(super) async fn next(&mut self) -> io::Result<Option<Result<NewPet, String>>> {
        loop {
            let mut text = self.read().await?;
            self.number += 1;
            if is_cut(&text) {
                while is_cut(&text) {
                    text = self.read().await?;
                }
                let reason = format!("the line must have less than {MAX_BYTES} bytes");
                return Ok(Some(Err(reason)));
            }
            if text.is_empty() {
                return Ok(None);
            }
            let content = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
            if !content.trim_ascii().is_empty() {
                return Ok(Some(from_slice(&text, Subject::Line)));
            }
        }
    }

    /// Reads up to the end of a line, or as much of it as a valid one can have. Empty at the end of the input.
    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        (&mut self.input)
            .take(MAX_BYTES as u64)
            .read_until(b'\n', &mut text)
            .await?;
        Ok(text)
    }
}

fn is_cut(text: &[u8]) -> bool {
    text.len() == MAX_BYTES && !text.ends_with(b"\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn lines(text: &str) -> Lines {
        Lines::new(Box::new(Cursor::new(text.to_owned())))
    }

    /// Returns the number of each line that is not blank, with its pet.
    async fn read(text: &str) -> Vec<(u64, Result<NewPet, String>)> {
        let mut lines = lines(text);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push((lines.number(), line));
        }
        read
    }

    #[tokio::test]
    async fn a_byte_order_mark_before_the_first_line_is_ignored() {
        let pet = "{\"name\":\"a\",\"categoryId\":1}\n";
        let expected = read(pet).await;
        assert_eq!(read(&format!("\u{feff}{pet}")).await, expected);
        let after_blank = read(&format!("\u{feff}\r\n{pet}")).await;
        assert_eq!(after_blank, [(2, expected[0].1.clone())]);
        assert_eq!(read("\u{feff}").await, []);
    }

    #[tokio::test]
    async fn only_an_input_that_begins_with_a_bracket_is_an_array() {
        for (text, expected) in [
            ("[", true),
            ("[{\"name\":\"a\",\"categoryId\":1}]\n", true),
            ("\u{feff}\n \t[\n{}", true),
            ("", false),
            ("\n{}\n[", false),
            ("x[", false),
        ] {
            let is_array = lines(text).is_array().await.unwrap();
            assert_eq!(is_array, expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn lines_are_numbered_from_one_and_blank_ones_are_skipped() {
        let read = read("\n{\"name\":\"a\"}\n \n[]\nnonsense\n").await;
        let refused: Vec<_> = read
            .into_iter()
            .map(|(number, line)| (number, line.unwrap_err()))
            .collect();
        let expected = [
            (2, "categoryId is required"),
            (4, "the line must be a JSON object"),
            (5, "the line must be valid JSON: error at column 2"),
        ];
        assert_eq!(
            refused,
            expected.map(|(number, reason)| (number, reason.to_owned()))
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_alone() {
        let long = "x".repeat(3 * MAX_BYTES);
        let read = read(&format!("{long}\n{{\"name\":\"a\",\"categoryId\":1}}\n")).await;
        let [(1, Err(reason)), (2, Ok(_))] = &read[..] else {
            panic!("{read:?}")
        };
        assert!(reason.contains("less than 16384 bytes"), "{reason}");
    }
}
