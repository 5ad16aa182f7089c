//! The part of `animal-store doctor` about the file: what has stopped services.
//!
//! The diagnosis changes no byte of the file, and works beside a running server.

use std::{os::unix::fs::MetadataExt, path::Path, time::Duration};

use animal_store_adapter_kit::command_of_owner;
use animal_store_app::Finding;
use tokio::time::timeout;

use crate::{
    FileUse, SqliteFile,
    bulk::has_unfinished_copy,
    error::Problem,
    file::{Disk, check_believed, check_writable, has_several_names, log_bytes, mount_problem},
    session::Session,
    values::text,
};

/// The permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Subject of the free space.
const DISK: &str = "sqlite.disk";

/// Least free space, in bytes: a checkpoint and a few thousand pets.
const LEAST_FREE: u64 = 100 << 20;

/// Size of a log that a reader keeps from being reset, in bytes.
const LARGE_LOG: u64 = 256 << 20;

/// Longest time of the check of all pages. It reads about a gigabyte in this time from a slow disk.
const CHECK_LIMIT: Duration = Duration::from_mins(1);

/// Greatest number of lines of a finding. SQLite has up to 100 in one problem.
const MAX_LINES: usize = 10;

/// The result is `ok`, or the first problems.
const CHECK: &str = "SELECT group_concat(quick_check, char(10)) FROM (SELECT quick_check FROM pragma_quick_check LIMIT 10)";

/// Examines the file. `wait` is the longest wait for another process.
pub async fn diagnose(path: &Path, wait: Duration) -> Vec<Finding> {
    let opened = SqliteFile::open(path, FileUse::Read, wait);
    let subject = "sqlite.file";
    let writable = check_writable(path).map_err(|problem| problem.at(path));
    let refusal = opened.as_ref().err().or(writable.as_ref().err());
    let mut findings = vec![match refusal {
        None => Finding::ok(subject, path.display().to_string()),
        Some(error) => match error.problem {
            Problem::Pending(_) => Finding::warning(
                subject,
                error.to_string(),
                "the next start of the service runs them",
            ),
            Problem::Journal => Finding::warning(subject, error.to_string(), "start the service"),
            Problem::Missing => Finding::error(
                subject,
                error.to_string(),
                "check the path; a start of the service creates the file",
            ),
            _ => Finding::error(
                subject,
                error.to_string(),
                "resolve this: the service does not start",
            ),
        },
    }];
    if path.is_file() {
        findings.extend([permissions(path), mount(path), disk(path), log(path)]);
    }
    if let Ok(file) = opened {
        let copy = Session::new(&file).read(has_unfinished_copy).await;
        findings.extend(copy.map(|is_unfinished| Finding::copy("sqlite.copy", is_unfinished)));
        findings.push(pages(&file).await);
    }
    findings
}

fn permissions(path: &Path) -> Finding {
    let subject = "sqlite.permissions";
    if let Ok(Some(objection)) = check_believed(path) {
        return Finding::warning(subject, objection.found, objection.advice);
    }
    match path.metadata() {
        Ok(metadata) if metadata.mode() & OTHERS == 0 => {
            Finding::ok(subject, "only the owner can read the file")
        }
        Ok(metadata) => {
            let found = format!(
                "mode {:03o}: other users can use the file",
                metadata.mode() & 0o777
            );
            let name = path.to_string_lossy();
            let command = format!("chmod 600 {}", shell_words::quote(&name));
            Finding::warning(subject, found, command_of_owner(path, &command))
        }
        Err(error) => Finding::unknown(
            subject,
            error.to_string(),
            "check the permissions of the folder",
        ),
    }
}

fn mount(path: &Path) -> Finding {
    let subject = "sqlite.mount";
    if path.metadata().is_ok_and(|file| has_several_names(&file)) {
        let found = "the file has several names (hard links), so it cannot be used without its log";
        return Finding::error(
            subject,
            found,
            "remove all but the one that the service uses",
        );
    }
    match mount_problem(path) {
        None => Finding::ok(subject, "the file and its folder are on one disk"),
        Some(problem) => Finding::error(subject, problem, "move or mount the folder of the file"),
    }
}

fn disk(path: &Path) -> Finding {
    match Disk::of(path) {
        Ok(disk) => free_space(&disk),
        Err(error) => Finding::unknown(DISK, error.to_string(), "check the disk with df"),
    }
}

fn free_space(disk: &Disk) -> Finding {
    let found = format!("{} MiB are free", disk.free >> 20);
    let advice = "free some space: on a full disk, creates get 503";
    if disk.free < disk.reserve {
        Finding::error(DISK, found, advice)
    } else if disk.free < LEAST_FREE {
        Finding::warning(DISK, found, advice)
    } else {
        Finding::ok(DISK, found)
    }
}

fn log(path: &Path) -> Finding {
    let subject = "sqlite.log";
    let size = log_bytes(path);
    let found = format!("the log (-wal) has {} MiB", size >> 20);
    if size < LARGE_LOG {
        Finding::ok(subject, found)
    } else {
        let advice = "end the process that has been reading the file for long: SQLite resets the log only without readers";
        Finding::warning(subject, found, advice)
    }
}

async fn pages(file: &SqliteFile) -> Finding {
    let subject = "sqlite.pages";
    let session = Session::new(file);
    let check = session.read(|connection| text(connection, CHECK));
    match timeout(CHECK_LIMIT, check).await {
        Ok(Ok(result)) if result == "ok" => Finding::ok(subject, "all pages are valid"),
        Ok(Ok(problems)) => {
            let problems: Vec<_> = problems.lines().take(MAX_LINES).collect();
            let advice = "restore a backup, or save what can be read with animal-store copy, or as \
                          docs/operations/sqlite.md says";
            Finding::error(subject, problems.join("; "), advice)
        }
        // It says what to do.
        Ok(Err(error)) => {
            let advice = "resolve this, and repeat the command";
            Finding::error(subject, error.to_string(), advice)
        }
        Err(_) => {
            let found = format!("not all were read within {} seconds", CHECK_LIMIT.as_secs());
            Finding::unknown(subject, found, "run PRAGMA quick_check with sqlite3")
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_app::Verdict;

    use super::*;

    #[test]
    fn free_space_below_the_reserve_is_an_error_and_below_100_mib_a_warning() {
        let reserve = 64 << 20;
        let least = 100 << 20;
        for (free, expected) in [
            (reserve - 1, Verdict::Error),
            (reserve, Verdict::Warning),
            (least - 1, Verdict::Warning),
            (least, Verdict::Ok),
        ] {
            let finding = free_space(&Disk { free, reserve });
            assert_eq!(finding.verdict, expected, "{}", finding.found);
        }
    }
}
