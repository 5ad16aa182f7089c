//! What is around the file: its permissions, its disk, its log and other processes.

use std::{io, os::unix::fs::MetadataExt, path::Path};

use animal_store_app::Finding;

use super::not_examined;
use crate::{SqliteFile, file::log_path};

/// The permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Least free space, in bytes: a checkpoint and a few thousand pets.
const LEAST_FREE: u64 = 100 << 20;

/// Size of the log that no checkpoint could shorten, in bytes.
const LARGE_LOG: u64 = 256 << 20;

pub(super) fn permissions(path: &Path) -> Finding {
    let subject = "sqlite.permissions";
    match path.metadata() {
        Ok(metadata) if metadata.mode() & OTHERS == 0 => Finding::ok(subject, "only the owner can read the file"),
        Ok(metadata) => {
            let found = format!("mode {:03o}: other users can use the file", metadata.mode() & 0o777);
            Finding::warning(subject, found, format!("chmod 600 {}", path.display()))
        }
        Err(error) => not_examined(subject, error),
    }
}

pub(super) fn disk(path: &Path) -> Finding {
    let subject = "sqlite.disk";
    match rustix::fs::statvfs(path).map_err(io::Error::from) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let found = format!("{} MiB are free", free >> 20);
            if free >= LEAST_FREE {
                Finding::ok(subject, found)
            } else {
                Finding::warning(subject, found, "free some space: on a full disk, creates get 503")
            }
        }
        Err(error) => not_examined(subject, error),
    }
}

pub(super) fn log(path: &Path) -> Finding {
    let subject = "sqlite.log";
    match log_path(path).metadata() {
        Ok(log) if log.len() > LARGE_LOG => {
            let found = format!("{} MiB: it grows while a program reads without a pause", log.len() >> 20);
            Finding::warning(subject, found, "end other programs that read the file, such as sqlite3")
        }
        Ok(log) => Finding::ok(subject, format!("{} KiB", log.len() >> 10)),
        Err(error) => not_examined(subject, error),
    }
}

pub(super) fn processes(file: &SqliteFile) -> Finding {
    let is_shared = file.is_open_elsewhere();
    Finding::ok(
        "sqlite.processes",
        if is_shared { "another process has the file open" } else { "none has the file open" },
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use animal_store_app::Verdict;

    use super::*;

    #[test]
    fn a_log_of_more_than_256_mib_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pets.db");
        for (len, verdict) in [(256 << 20, Verdict::Ok), ((256 << 20) + 1, Verdict::Warning)] {
            File::create(log_path(&path)).unwrap().set_len(len).unwrap();
            assert_eq!(log(&path).verdict, verdict, "{len}");
        }
    }
}
