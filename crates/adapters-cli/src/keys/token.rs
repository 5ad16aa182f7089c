//! Tokens on standard output and standard input.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::fs::MetadataExt},
};

use animal_store_app::{ApiKey, ApiToken};
use anyhow::{Context, ensure};
use nix::{errno::Errno, unistd::write};
use secrecy::{ExposeSecret, SecretString};

/// Returns 256 random bits for a new API key.
///
/// # Errors
/// If the operating system provides none.
pub fn random_bits() -> anyhow::Result<[u8; 32]> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).context("the operating system provides no random bits")?;
    Ok(bits)
}

/// Refuses a standard output that shows no token. The standard library opens `/dev/null` in place of a closed one, and
/// ignores the failure of a write to one that is only open for reading.
pub(super) fn check_output() -> anyhow::Result<()> {
    let is_writable = write(io::stdout(), &[]) != Err(Errno::EBADF);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    ensure!(
        is_writable && output.rdev() != fs::metadata("/dev/null")?.rdev(),
        "standard output is closed or discarded, so the new token would be lost: nothing was changed"
    );
    Ok(())
}

pub(super) fn print_token(key: &ApiKey, token: &ApiToken) -> anyhow::Result<()> {
    let line = SecretString::from(format!("{}\n", token.secret().expose_secret()));
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(line.expose_secret().as_bytes());
    let flushed = written.and_then(|()| stdout.flush());
    flushed.with_context(|| {
        format!("the new token of the API key {} could not be printed and is lost: rotate or revoke the key", key.id)
    })
}

/// Reads one token from standard input, with or without a byte order mark and a line end.
pub(super) fn read_token() -> anyhow::Result<ApiToken> {
    let mut text = String::new();
    let mut input = io::stdin().lock().take(4096);
    let read = input.read_to_string(&mut text);
    read.context("cannot read the token")?;
    let token = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let token = token.strip_suffix('\n').unwrap_or(token);
    let token = token.strip_suffix('\r').unwrap_or(token);
    let token = ApiToken::parse(token.into());
    let token = token.context("standard input does not contain a valid token")?;
    if token.is_short() {
        tracing::warn!(
            "the token has fewer than 22 characters and can be guessed: rotate the key, which generates a token"
        );
    }
    Ok(token)
}
