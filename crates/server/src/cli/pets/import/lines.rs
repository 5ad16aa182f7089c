use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    thread::{self, JoinHandle},
};

use animal_store_adapters_http::parse_line;
use animal_store_app::PetDigest;
use animal_store_domain::NewPet;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::cli::transfer::progress_bar;

/// Longest line in bytes: a pet has at most a name of 255 characters, each with at most 12 bytes in JSON.
const MAX_BYTES: u64 = 16 * 1024;

/// Number of lines that are read ahead.
const READ_AHEAD: usize = 1_000;

/// A line that is not blank.
pub(super) struct Line {
    /// Line number in the file, from 1.
    pub(super) number: u64,
    /// The pet and a key that identifies the line by its content, or every reason why it contains no valid pet.
    pub(super) pet: Result<(NewPet, String), String>,
}

/// The lines, which a thread of its own reads and parses.
pub(super) struct Lines {
    /// It ends after the last line, or after an error that [`finish`](Self::finish) returns.
    pub(super) receiver: Receiver<Line>,
    thread: JoinHandle<io::Result<()>>,
}

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
    pub(super) fn open(path: Option<&Path>, quiet: bool) -> io::Result<Self> {
        let input: Box<dyn Read + Send> = match path {
            None => Box::new(progress_bar(quiet, None, "{bytes}, {bytes_per_sec}").wrap_read(io::stdin())),
            Some(path) => {
                let file = File::open(path)?;
                let bar = progress_bar(quiet, Some(file.metadata()?.len()), "[{bar:30}] {percent} %, {eta}");
                Box::new(bar.wrap_read(file))
            }
        };
        let (sender, receiver) = channel(READ_AHEAD);
        let thread = thread::Builder::new().spawn(move || send_lines(BufReader::new(input), &sender))?;
        Ok(Self { receiver, thread })
    }

    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.receiver);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
    }
}

fn send_lines(mut input: impl BufRead, sender: &Sender<Line>) -> io::Result<()> {
    // By the first half of the digest of a pet: the number of lines that have contained it.
    let mut counts: HashMap<[u8; 16], u32> = HashMap::new();
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        if input.by_ref().take(MAX_BYTES).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        let pet = if text.len() as u64 == MAX_BYTES && !text.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            Err(format!("the line must have less than {MAX_BYTES} bytes"))
        } else if text.trim_ascii().is_empty() {
            continue;
        } else {
            parse_line(&text).map(|pet| {
                let digest = PetDigest::from_pet(&pet);
                let ([half, _], _) = digest.as_bytes().as_chunks() else { unreachable!("32 bytes are two times 16") };
                let count = counts.entry(*half).or_default();
                *count += 1;
                (pet, format!("{} {count}", hex::encode(digest.as_bytes())))
            })
        };
        if sender.blocking_send(Line { number, pet }).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u64, Result<String, String>)> {
        let (sender, mut receiver) = channel(100);
        send_lines(text.as_bytes(), &sender).unwrap();
        drop(sender);
        let line = |Line { number, pet }| (number, pet.map(|(_, key)| key));
        std::iter::from_fn(|| receiver.blocking_recv().map(line)).collect()
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
