//! Files that are read whole: the configuration, and the secrets and certificates that it names.
//!
//! A link can lead to a file that has no end, such as `/dev/zero`, and editors write a byte order mark before a text.

#[cfg(test)]
mod tests;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::fcntl::OFlag;

/// Size of the largest file. A bundle of every public authority has a fifth of it.
const MAX_BYTES: u64 = 1_048_576;

/// Most files are smaller.
const USUAL_BYTES: usize = 65_536;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a file or a pipe, without a byte order mark. Opening a pipe waits for its writer.
///
/// # Errors
/// If it cannot be read, or is larger than 1 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    read_open(file)
}

/// The same as [`read`], for a text.
///
/// # Errors
/// If it cannot be read, is larger than 1 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let content = read(path)?;
    let text = String::from_utf8(content);
    // The error of the conversion has the text, which can be a secret.
    text.map_err(|_| io::Error::other("it is not UTF-8"))
}

/// The same as [`read`], for a file that is read again and again: it never waits, because a pipe is an error.
///
/// # Errors
/// If it cannot be read, is larger than 1 MiB, or is not a regular file.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let error = io::Error::other("it is not a regular file");
        return Err(error);
    }
    read_open(file)
}

fn read_open(file: File) -> io::Result<Vec<u8>> {
    // A buffer that grows would leave copies of a secret.
    let mut content = Vec::with_capacity(USUAL_BYTES);
    let mut file = file.take(MAX_BYTES + 1);
    file.read_to_end(&mut content)?;
    let size = content.len() as u64;
    if size > MAX_BYTES {
        let error = io::Error::other("it is larger than 1 MiB");
        return Err(error);
    }
    if content.starts_with(BYTE_ORDER_MARK) {
        content.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(content)
}
