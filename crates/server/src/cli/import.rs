//! `animal-store pets import`: creates the pet of each line, as a client of the service does.
//!
//! Each create has an idempotency key made of the name of the import, the digest of the pet, and the number of equal
//! lines before it. So an import that is repeated adds only what is missing, as long as these keys are kept, and a create
//! that failed is [repeated](retry).

mod retry;

use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use animal_store_adapters_sqlite::FileUse;
use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, CreatePet, IdempotencyKey, PetDigest, Scopes, WriteAccess,
    ports::{AddPet, AddPetError, AddedPet},
};
use animal_store_domain::NewPet;
use animal_store_pet_json::{self as pet_json, Subject};
use anyhow::{Context, bail, ensure};
use clap::{Args, builder::NonEmptyStringValueParser};
use sha2::{Digest, Sha256};
use tokio::{
    fs::File,
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, stderr, stdin},
    task::JoinSet,
};

use self::retry::Retry;
use super::command::{InvalidConfig, print_result};
use crate::{config::StorageConfig, wiring::Storage};

/// Number of creates in flight, which share commits.
const IN_FLIGHT: usize = 1_000;

/// Longest line in bytes: a pet has at most a name of 255 characters, each with at most 12 bytes in JSON.
const MAX_BYTES: usize = 16 * 1024;

/// The beginning of a file of some editors.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// File to read, with a pet per line as JSON, in the shape of a request body; -: standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Name of the import; default: the digest of the file. An import that is repeated under its name within the
    /// retention of idempotency keys adds only the pets that are missing.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Creates the SQLite file if there is none.
    #[arg(long)]
    create: bool,
}

pub(super) async fn run(args: ImportArgs, storage: StorageConfig) -> anyhow::Result<()> {
    let started = Instant::now();
    let unreadable = || format!("{} cannot be read", args.input.display());
    let path = (args.input.as_os_str() != "-").then_some(&*args.input);
    let name = match (args.name, path) {
        (Some(name), _) => name,
        (None, Some(path))
            if !fs::metadata(path).is_ok_and(|input| input.file_type().is_fifo()) =>
        {
            digest(path).with_context(unreadable)?
        }
        (None, _) => bail!(InvalidConfig(
            "standard input and a pipe can be read only once: add --name".to_owned()
        )),
    };
    let mut lines = Lines::new(match path {
        Some(path) => Box::new(File::open(path).await.with_context(unreadable)?),
        None => Box::new(stdin()),
    });
    let is_array = lines.is_array().await.context("the input cannot be read")?;
    ensure!(
        !is_array,
        "the input is a JSON array, not a pet per line: convert it with jq -c '.[]'"
    );
    let usage = if args.create {
        FileUse::WriteOrCreate
    } else {
        FileUse::Write
    };
    let storage = Storage::start_for_command(storage, usage).await?;
    let create = CreatePet::new((storage.new_repository)());
    let access = access()?;
    let retry = Retry::default();
    let (mut in_flight, mut stderr) = (JoinSet::new(), stderr());
    let (mut valid, mut present, mut refused) = (0, 0, 0_u64);
    while let Some(line) = lines.next().await.context("the input cannot be read")? {
        match line {
            Ok((pet, key)) => {
                valid += 1;
                present += finish(&mut in_flight, IN_FLIGHT - 1).await?;
                let idempotency_key =
                    IdempotencyKey::new(access.key().id.clone(), &format!("{name} {key}"));
                let request = AddPet {
                    pet,
                    idempotency_key: Some(idempotency_key),
                };
                let create = create.clone();
                let access = access.clone();
                let attempts = retry.clone();
                in_flight.spawn(async move {
                    let attempt = || create.execute(&access, request.clone());
                    attempts.run(attempt).await
                });
            }
            Err(reason) => {
                refused += 1;
                let text = format!("line {}: {reason}\n", lines.number);
                let write = async {
                    stderr.write_all(text.as_bytes()).await?;
                    stderr.flush().await
                };
                write.await.context("the refused lines cannot be written")?;
            }
        }
    }
    present += finish(&mut in_flight, 0).await?;
    drop(create);
    storage.close().await;
    let result = [
        ("added", (valid - present).to_string()),
        ("already present", present.to_string()),
        ("name", name),
        ("refused", refused.to_string()),
    ];
    print_result(&result, started)?;
    ensure!(refused == 0, "refused lines: {refused}");
    Ok(())
}

/// Waits until at most `max` creates are in flight. Returns how many of the others found their pet.
async fn finish(
    in_flight: &mut JoinSet<Result<AddedPet, AddPetError>>,
    max: usize,
) -> anyhow::Result<u64> {
    let mut present = 0;
    while in_flight.len() > max
        && let Some(created) = in_flight.join_next().await
    {
        let added =
            created?.context("the import failed: run the same command again to continue")?;
        present += u64::from(added.replayed);
    }
    Ok(present)
}

/// The access of imports, under an API key id that no other key has: others have 11 digits or a number.
fn access() -> anyhow::Result<WriteAccess> {
    let key = ApiKey {
        id: ApiKeyId::parse("import")?,
        label: ApiKeyLabel::parse("import")?,
        scopes: Scopes::ALL,
    };
    Ok(WriteAccess::new(Arc::new(key))?)
}

/// Returns the SHA-256 digest of a file.
fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut sha256, mut buffer) =
        (fs::File::open(path)?, Sha256::new(), vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(sha256.finalize())),
            read => sha256.update(&buffer[..read]),
        }
    }
}

/// The lines of the input.
struct Lines {
    input: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// Number of the last line that was read, from 1.
    number: u64,
    /// By the first half of the digest of a pet: the number of lines that have contained it.
    counts: HashMap<[u8; 16], u32>,
}

impl Lines {
    fn new(input: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, input),
            number: 0,
            counts: HashMap::new(),
        }
    }

    /// Returns whether the input begins as a JSON array. Reads no line.
    async fn is_array(&mut self) -> io::Result<bool> {
        let start = self.input.fill_buf().await?;
        let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
        Ok(start.trim_ascii_start().starts_with(b"["))
    }

    /// Returns the pet of the next line that is not blank and a key that identifies the line by its content, or every
    /// reason why it contains no valid pet.
    async fn next(&mut self) -> io::Result<Option<Result<(NewPet, String), String>>> {
        loop {
            let mut text = self.read().await?;
            self.number += 1;
            let is_cut = |text: &[u8]| text.len() == MAX_BYTES && !text.ends_with(b"\n");
            if is_cut(&text) {
                while is_cut(&text) {
                    text = self.read().await?;
                }
                return Ok(Some(Err(format!(
                    "the line must have less than {MAX_BYTES} bytes"
                ))));
            }
            if text.is_empty() {
                return Ok(None);
            }
            let content = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
            if !content.trim_ascii().is_empty() {
                return Ok(Some(
                    pet_json::from_slice(&text, Subject::Line).map(|pet| self.with_key(pet)),
                ));
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

    fn with_key(&mut self, pet: NewPet) -> (NewPet, String) {
        let digest = PetDigest::from_pet(&pet);
        let (half, _) = digest
            .0
            .split_first_chunk()
            .expect("32 bytes have a half of 16");
        let count = self.counts.entry(*half).or_default();
        *count += 1;
        (pet, format!("{} {count}", hex::encode(digest.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &str) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(text.to_owned())));
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push((lines.number, line.map(|(_, key)| key)));
        }
        read
    }

    #[tokio::test]
    async fn equal_pets_have_different_keys_however_they_are_written() {
        let text = "{\"name\":\"a\",\"categoryId\":1}\n{\"categoryId\":1.0,\"name\":\"\\u0061\",\"id\":7}\r\n\
                    {\"name\":\"b\",\"categoryId\":1}";
        let keys: Vec<_> = lines(text)
            .await
            .into_iter()
            .map(|(_, key)| key.unwrap())
            .collect();
        let (first, second) = (
            keys[0].split_once(' ').unwrap(),
            keys[1].split_once(' ').unwrap(),
        );
        assert_eq!((first.0, first.1, second.1), (second.0, "1", "2"));
        assert!(
            keys[2].ends_with(" 1") && !keys[2].starts_with(first.0),
            "{keys:?}"
        );
        assert_eq!(
            lines(text)
                .await
                .into_iter()
                .map(|(_, key)| key.unwrap())
                .collect::<Vec<_>>(),
            keys
        );
    }

    #[tokio::test]
    async fn a_byte_order_mark_before_the_first_line_is_ignored() {
        let pet = "{\"name\":\"a\",\"categoryId\":1}\n";
        let expected = lines(pet).await;
        assert_eq!(lines(&format!("\u{feff}{pet}")).await, expected);
        let after_blank = lines(&format!("\u{feff}\r\n{pet}")).await;
        assert_eq!(after_blank, [(2, expected[0].1.clone())]);
        assert_eq!(lines("\u{feff}").await, []);
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
            let mut lines = Lines::new(Box::new(io::Cursor::new(text.to_owned())));
            assert_eq!(lines.is_array().await.unwrap(), expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn lines_are_numbered_from_one_and_blank_ones_are_skipped() {
        let text = "\n{\"name\":\"a\"}\n \n[]\nnonsense\n";
        let lines = lines(text).await;
        let refused: Vec<_> = lines
            .into_iter()
            .map(|(number, key)| (number, key.unwrap_err()))
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
        let text = format!(
            "{}\n{{\"name\":\"a\",\"categoryId\":1}}\n",
            "x".repeat(3 * MAX_BYTES)
        );
        let lines = lines(&text).await;
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0]
                .1
                .as_ref()
                .is_err_and(|reason| reason.contains("less than 16384 bytes")),
            "{lines:?}"
        );
        assert_eq!((lines[1].0, lines[1].1.is_ok()), (2, true));
    }
}
