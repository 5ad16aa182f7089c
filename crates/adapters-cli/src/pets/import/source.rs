use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use animal_store_app::ApiKeyLabel;
use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use tokio::{
    fs::File,
    io::{AsyncRead, stdin},
    task::spawn_blocking,
};

use super::lines::READ_BYTES;
use crate::UsageError;

/// What an import reads.
pub(super) enum Source<'a> {
    StandardInput,
    File(&'a Path),
}

impl<'a> Source<'a> {
    pub(super) fn of(path: &'a Path) -> Self {
        if path.as_os_str() == "-" {
            Self::StandardInput
        } else {
            Self::File(path)
        }
    }

    /// Returns the name of the import: the given one, or the digest of the file.
    pub(super) async fn import_name(&self, given: Option<ApiKeyLabel>) -> anyhow::Result<String> {
        if let Some(name) = given {
            return Ok(name.to_string());
        }
        match self {
            Self::File(path) if can_be_read_twice(path) => {
                let file = path.to_path_buf();
                // A signal ends the import meanwhile.
                let digest = spawn_blocking(move || digest(&file)).await?;
                digest.with_context(|| unreadable(path))
            }
            Self::File(_) | Self::StandardInput => {
                let reason =
                    "standard input, a pipe and a device can be read only once: add --name";
                bail!(UsageError(reason.to_owned()))
            }
        }
    }

    pub(super) async fn open(&self) -> anyhow::Result<Box<dyn AsyncRead + Send + Unpin>> {
        match self {
            Self::StandardInput => Ok(Box::new(stdin())),
            Self::File(path) => {
                let file = File::open(path).await;
                Ok(Box::new(file.with_context(|| unreadable(path))?))
            }
        }
    }
}

fn unreadable(path: &Path) -> String {
    format!("{} cannot be read", path.display())
}

/// A folder, and what cannot be examined, fails when it is opened.
fn can_be_read_twice(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |input| input.is_file() || input.is_dir())
}

/// Returns the SHA-256 digest of a file.
fn digest(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(sha256.finalize())),
            read => sha256.update(&buffer[..read]),
        }
    }
}
