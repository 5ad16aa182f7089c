//! Files that are read whole: the configuration, and the secrets and certificates that it names.
//!
//! A link can lead to a file that has no end, such as `/dev/zero`, and editors write a byte order mark before a text.

#[cfg(test)]
mod tests;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
};

use nix::{
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

/// Size of the largest file. A bundle of every public authority has a fifth of it.
const MAX_BYTES: u64 = 1_048_576;

/// Most files are smaller.
const USUAL_BYTES: usize = 65_536;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How long the writer of a pipe may take for its next bytes, in milliseconds: it can be a person with a password.
const MAX_WAIT: u16 = 60_000;

/// Reads a file or a pipe, without a byte order mark.
///
/// # Errors
/// If it cannot be read, is larger than 1 MiB, or is a pipe that has no next bytes for 60 s.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_waiting(path, MAX_WAIT)
}

/// The same as [`read`], for a text.
///
/// # Errors
/// Those of [`read`], or if it is not UTF-8.
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
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let error = io::Error::other("it is not a regular file");
        return Err(error);
    }
    read_open(file)
}

fn read_waiting(path: &Path, max_wait: u16) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    read_open(Waiting { file, max_wait })
}

/// Does not wait for the writer of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
}

fn read_open(file: impl Read) -> io::Result<Vec<u8>> {
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

/// A file whose reads wait for bytes, or for the end of the last writer.
struct Waiting {
    file: File,
    /// In milliseconds.
    max_wait: u16,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut files, PollTimeout::from(self.max_wait))?;
        if ready == 0 {
            let error = io::Error::other("nothing was written to it in time");
            return Err(error);
        }
        self.file.read(buffer)
    }
}
