//! The checks of a file before it is used, and its creation.

use std::{
    fs::{File, Metadata, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf, absolute},
    time::Duration,
};

use animal_store_adapter_kit::{Believed, Objection, SchemaComparison};
use diesel::{SqliteConnection, connection::SimpleConnection};
use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat},
};

use super::{
    FileUse,
    connection::connect,
    header::Header,
    identity::{beside, folder_of, log_path, log_paths},
    log,
};
use crate::{
    error::Problem,
    schema::{self, APPLICATION_ID},
    values::{number, text},
};

/// The owner may read and write.
const MODE: u32 = 0o600;

/// Creates an empty file with mode 0600, which SQLite also gives to the files beside it.
pub(crate) fn create(path: &Path) -> Result<(), Problem> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    // The umask may have removed permissions of the owner.
    let created = file.and_then(|file| file.set_permissions(Permissions::from_mode(MODE)));
    match created.and_then(|()| File::open(folder_of(&absolute(path)?))?.sync_all()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        // Another process has just created it.
        _ => Ok(()),
    }
}

/// Refuses a file if another user decides what it, its log, its journal or its shared memory contains. Returns the
/// objection to a folder on the way.
pub(crate) fn check_believed(path: &Path) -> Result<Option<Objection>, Problem> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let others = ["-wal", "-journal", "-shm"].map(|suffix| beside(&target, suffix));
    Believed::this_process()
        .judge_store(path, &others)
        .map_err(Problem::NotBelieved)
}

/// Checks that the file exists, is believed, and that this program can use it.
pub(super) fn connect_checked(
    path: &Path,
    usage: FileUse,
    timeout: Duration,
) -> Result<(SqliteConnection, SchemaComparison), Problem> {
    check_exists(path)?;
    check_believed(path)?;
    check_log(path)?;
    let mut connection = match connect(path, usage, timeout) {
        Err(Problem::NotWritable(_)) if usage == FileUse::Read && has_journal(path) => {
            return Err(Problem::Journal);
        }
        connected => connected?,
    };
    // In this order: another process may run the first migration, which sets the id and creates the tables, meanwhile.
    let objects = number(&mut connection, "SELECT count(*) FROM sqlite_schema")?;
    let application_id = number(&mut connection, "PRAGMA application_id")?;
    let is_new = application_id == 0 && objects == 0;
    if application_id != APPLICATION_ID && !is_new {
        return Err(Problem::OtherProgram);
    }
    let compared = schema::compare(&mut connection)?;
    Ok((connection, compared))
}

/// Checks that this user may write the file, its folder and the files beside it. Writes nothing.
pub(crate) fn check_writable(path: &Path) -> Result<(), Problem> {
    let log = log_path(path);
    for each in [path, folder_of(&log), &log] {
        match faccessat(AT_FDCWD, each, AccessFlags::W_OK, AtFlags::AT_EACCESS) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => {
                let reason = format!("{}: {error}", each.display());
                return Err(Problem::NotWritable(reason));
            }
        }
    }
    Ok(())
}

/// Distinguishes a file that was never there from one that was moved away from its log, or replaced beside it. SQLite
/// removes a log beside an empty file, and writes a log into any other file.
pub(super) fn check_exists(path: &Path) -> Result<(), Problem> {
    let mut logs = log_paths(path);
    let log = logs.pop().expect("it has that of the path");
    // Before the file: a first start writes the log after the file.
    let log_bytes = log.metadata().ok().map(|log| log.len());
    let file = match path.metadata() {
        Ok(file) => file,
        Err(error) if is_missing(&error) => {
            // If the log is empty, it is that of a process that still has the file open.
            return Err(match log_bytes {
                None => why_missing(path),
                Some(_) => Problem::Lost(log),
            });
        }
        // The next check has the reason.
        Err(_) => return check_beside_links(logs),
    };
    if file.is_dir() {
        return Err(Problem::IsFolder);
    }
    if !file.is_file() {
        return Err(Problem::IsSpecial);
    }
    let has_log = log_bytes.is_some_and(|bytes| bytes > 0);
    if has_log && !may_have_log(path, &file) {
        return Err(Problem::Lost(log));
    }
    check_beside_links(logs)
}

/// SQLite names the log by the path of the file. Fails if the file has several names (hard links), and another one can
/// have a log that this one lacks. The name with a log is the one in use, and a backup that is only read has no log.
pub(super) fn check_names(path: &Path, usage: FileUse) -> Result<(), Problem> {
    let Ok(file) = path.metadata() else {
        // The next check has the reason.
        return Ok(());
    };
    if !has_several_names(&file) || log_path(path).exists() {
        return Ok(());
    }
    if usage == FileUse::Read && !may_have_log(path, &file) {
        return Ok(());
    }
    Err(Problem::HardLinks)
}

pub(crate) fn has_several_names(file: &Metadata) -> bool {
    file.is_file() && file.nlink() > 1
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether the file has a format with a log, or none that can be read.
fn may_have_log(path: &Path, file: &Metadata) -> bool {
    file.len() > 0 && Header::of(path).is_none_or(|header| header.has_log())
}

/// SQLite ignores a log beside a link.
fn check_beside_links(logs: Vec<PathBuf>) -> Result<(), Problem> {
    match logs.into_iter().find(|log| has_content(log)) {
        Some(log) => Err(Problem::Lost(log)),
        None => Ok(()),
    }
}

fn why_missing(path: &Path) -> Problem {
    if path.is_symlink() {
        Problem::BrokenLink
    } else if folder_of(path).is_dir() {
        Problem::Missing
    } else {
        Problem::NoFolder
    }
}

/// Refuses a log beside another store, into which SQLite would write it. A log with each page is no damage: it replaces
/// the store, as after a restore by SQLite.
fn check_log(path: &Path) -> Result<(), Problem> {
    let log = log_path(path);
    if !has_content(&log) {
        return Ok(());
    }
    // Before the log: it begins again only after its pages are in the file.
    let store_id = Header::of(path).map_or(0, |header| header.store_id);
    let is_of_another = log::read_store(&log)
        .is_some_and(|logged| logged.id != store_id && logged.id != 0 && !logged.is_complete);
    if store_id != 0 && is_of_another {
        return Err(Problem::Lost(log));
    }
    Ok(())
}

/// Whether a crash left a journal beside the file that the path names.
fn has_journal(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|target| has_content(&beside(&target, "-journal")))
}

fn has_content(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}

/// Switches the file to a log, and opens the log. Fails if another process keeps its lock, or without a permission.
pub(super) fn connect_to_write(
    path: &Path,
    timeout: Duration,
) -> Result<SqliteConnection, Problem> {
    let mut connection = connect(path, FileUse::Write, timeout)?;
    text(&mut connection, "PRAGMA journal_mode = WAL")?;
    // BEGIN IMMEDIATE alone succeeds without a permission to write.
    let write = format!("BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; ROLLBACK;");
    connection.batch_execute(&write)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_process_has_just_created_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        for _ in 0..2 {
            assert!(create(&path).is_ok());
        }
    }
}
