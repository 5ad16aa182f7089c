use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use animal_store_adapters_http::parse_line;
use animal_store_app::PetDigest;
use animal_store_domain::NewPet;
use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::cli::transfer::progress_bar;

/// Longest line in bytes: a pet has at most a name of 255 characters, each with at most 12 bytes in JSON.
const MAX_BYTES: u64 = 16 * 1024;

/// Number of bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// The lines of a file. Reading them, and reporting those that are refused, can block.
pub(super) struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    rejected: Box<dyn Write + Send>,
    /// Number of the last line that was read, from 1.
    number: u64,
    pub(super) refused: u64,
    /// By the first half of the digest of a pet: the number of lines that have contained it.
    counts: HashMap<[u8; 16], u32>,
}

/// A valid pet, and a key that identifies its line by its content.
pub(super) type Line = (NewPet, String);

/// Returns the SHA-256 digest of a file.
pub(super) fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut sha256) = (BufReader::new(File::open(path)?), Sha256::new());
    loop {
        let read = file.fill_buf()?;
        if read.is_empty() {
            return Ok(hex::encode(sha256.finalize()));
        }
        sha256.update(read);
        let length = read.len();
        file.consume(length);
    }
}

impl Lines {
    /// Opens a file, or standard input.
    pub(super) fn open(path: Option<&Path>, rejected: Box<dyn Write + Send>, quiet: bool) -> io::Result<Self> {
        let input: Box<dyn Read + Send> = match path {
            None => Box::new(progress_bar(quiet, None, "{bytes}, {bytes_per_sec}").wrap_read(io::stdin())),
            Some(path) => {
                let file = File::open(path)?;
                let bar = progress_bar(quiet, Some(file.metadata()?.len()), "[{bar:30}] {percent} %, {eta}");
                Box::new(bar.wrap_read(file))
            }
        };
        Ok(Self::new(input, rejected))
    }

    fn new(input: Box<dyn Read + Send>, rejected: Box<dyn Write + Send>) -> Self {
        let input = BufReader::with_capacity(READ_BYTES, input);
        Self { input, rejected, number: 0, refused: 0, counts: HashMap::new() }
    }

    /// Returns the next valid lines: as many as can be had without another wait. `None`: there are no more.
    pub(super) fn read(mut self) -> anyhow::Result<(Self, Option<Vec<Line>>)> {
        let mut lines = Vec::new();
        while lines.is_empty() || !self.input.buffer().is_empty() {
            match self.next().context("the input cannot be read")? {
                None if lines.is_empty() => return Ok((self, None)),
                None => break,
                Some(Ok(line)) => lines.push(line),
                Some(Err(reason)) => {
                    self.refused += 1;
                    let text = format!("line {}: {reason}\n", self.number);
                    self.rejected.write_all(text.as_bytes()).context("the refused lines cannot be written")?;
                }
            }
        }
        Ok((self, Some(lines)))
    }

    /// Returns the next line that is not blank, or every reason why it contains no valid pet.
    fn next(&mut self) -> io::Result<Option<Result<Line, String>>> {
        let mut text = Vec::new();
        loop {
            text.clear();
            if self.input.by_ref().take(MAX_BYTES).read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if text.len() as u64 == MAX_BYTES && !text.ends_with(b"\n") {
                self.input.skip_until(b'\n')?;
                return Ok(Some(Err(format!("the line must have less than {MAX_BYTES} bytes"))));
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(parse_line(&text).map(|pet| self.with_key(pet))));
            }
        }
    }

    fn with_key(&mut self, pet: NewPet) -> Line {
        let digest = PetDigest::from_pet(&pet);
        let ([half, _], _) = digest.0.as_chunks() else { unreachable!("32 bytes are two times 16") };
        let count = self.counts.entry(*half).or_default();
        *count += 1;
        (pet, format!("{} {count}", hex::encode(digest.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(text.to_owned())), Box::new(io::sink()));
        let next = || lines.next().unwrap().map(|line| (lines.number, line.map(|(_, key)| key)));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn equal_pets_have_different_keys_however_they_are_written() {
        let text = "{\"name\":\"a\",\"categoryId\":1}\n{\"categoryId\":1.0,\"name\":\"\\u0061\",\"id\":7}\r\n\
                    {\"name\":\"b\",\"categoryId\":1}";
        let keys: Vec<_> = lines(text).into_iter().map(|(_, key)| key.unwrap()).collect();
        let (first, second) = (keys[0].split_once(' ').unwrap(), keys[1].split_once(' ').unwrap());
        assert_eq!((first.0, first.1, second.1), (second.0, "1", "2"));
        assert!(keys[2].ends_with(" 1") && !keys[2].starts_with(first.0), "{keys:?}");
        assert_eq!(lines(text).into_iter().map(|(_, key)| key.unwrap()).collect::<Vec<_>>(), keys);
    }

    #[test]
    fn lines_are_numbered_from_one_and_blank_ones_are_skipped() {
        let text = "\n{\"name\":\"a\"}\n \n[]\nnonsense\n";
        let refused: Vec<_> = lines(text).into_iter().map(|(number, key)| (number, key.unwrap_err())).collect();
        let expected =
            [(2, "categoryId is required"), (4, "the line must be a JSON object"), (5, "the line must be valid JSON")];
        assert_eq!(refused, expected.map(|(number, reason)| (number, reason.to_owned())));
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_alone() {
        let longest = usize::try_from(MAX_BYTES).unwrap();
        let text = format!("{}\n{{\"name\":\"a\",\"categoryId\":1}}\n", "x".repeat(3 * longest));
        let lines = lines(&text);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].1.as_ref().is_err_and(|reason| reason.contains("less than 16384 bytes")), "{lines:?}");
        assert_eq!((lines[1].0, lines[1].1.is_ok()), (2, true));
    }
}
