//! The lines of an import.

use std::io;

use animal_store_domain::NewPet;
use animal_store_pet_json::{Subject, from_slice, without_byte_order_mark};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Longest line in bytes: a pet has at most a name of 255 characters, each with at most 12 bytes in JSON.
const MAX_BYTES: usize = 16 * 1024;

/// Number of bytes that are read at once.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// The lines of the input.
pub(super) struct Lines {
    input: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    number: u64,
    /// The start of the next line, if it was looked at already.
    next_text: Option<Vec<u8>>,
}

impl Lines {
    pub(super) fn new(input: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, input),
            number: 0,
            next_text: None,
        }
    }

    /// Returns the number of the last line that was read, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether the first line that is not blank begins as a JSON array. It stays the next one.
    pub(super) async fn is_array(&mut self) -> io::Result<bool> {
        loop {
            let text = self.read().await?;
            let content = content(&text);
            if content.is_empty() && text.ends_with(b"\n") {
                self.number += 1;
                continue;
            }
            let is_array = content.starts_with(b"[");
            self.next_text = Some(text);
            return Ok(is_array);
        }
    }

    /// Returns the pet of the next line that is not blank, or every reason why it contains no valid pet.
    pub(super) async fn next(&mut self) -> io::Result<Option<Result<NewPet, String>>> {
        loop {
            let mut text = match self.next_text.take() {
                Some(text) => text,
                None => self.read().await?,
            };
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
            if !content(&text).is_empty() {
                // An error at the end of the line has a column of this line.
                let line = text.strip_suffix(b"\n").unwrap_or(&text);
                return Ok(Some(from_slice(line, Subject::Line)));
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

/// Returns a line without white space around it.
fn content(text: &[u8]) -> &[u8] {
    without_byte_order_mark(text).trim_ascii()
}

fn is_cut(text: &[u8]) -> bool {
    text.len() == MAX_BYTES && !text.ends_with(b"\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    /// Returns the number of each line that is not blank, with its pet. The input is no array.
    async fn read(text: &str) -> Vec<(u64, Result<NewPet, String>)> {
        let mut lines = Lines::new(Box::new(Cursor::new(text.to_owned())));
        assert!(!lines.is_array().await.unwrap());
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
            // Each byte arrives alone.
            let (mut writer, reader) = duplex(1);
            tokio::spawn(async move { writer.write_all(text.as_bytes()).await });
            let is_array = Lines::new(Box::new(reader)).is_array().await.unwrap();
            assert_eq!(is_array, expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn lines_are_numbered_from_one_and_blank_ones_are_skipped() {
        let read = read("\n{\"name\":\"a\"}\n \n[]\nnonsense\n{\r\n,\n{\"name\":\"\n\n{").await;
        let refused: Vec<_> = read
            .into_iter()
            .map(|(number, line)| (number, line.unwrap_err()))
            .collect();
        let expected = [
            (2, "categoryId is required"),
            (4, "the line must be a JSON object"),
            (5, "the line must be valid JSON: error at column 2"),
            (6, "the line must be valid JSON: error at column 2"),
            (7, "the line must be valid JSON: error at column 1"),
            (8, "the line must be valid JSON: error at column 9"),
            (10, "the line must be valid JSON: error at column 1"),
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
