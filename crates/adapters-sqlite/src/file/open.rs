//! How a file is opened: its checks, its schema, and what tells it from another one later.

use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use animal_store_adapter_kit::SchemaComparison;

use super::{
    FileUse, OpenFile, SqliteFile,
    checks::{check_believed, check_names, connect_checked, connect_to_write},
    header::OpenHeader,
    identity::Identity,
    index::OpenLog,
};
use crate::{error::Problem, schema};

/// The pause before another attempt to open a locked file.
const LOCKED_PAUSE: Duration = Duration::from_millis(10);

/// A file that was opened.
pub(super) struct Opened {
    pub(super) file: SqliteFile,
    /// The migrations that were run.
    pub(super) migrations: Vec<String>,
}

/// Opens an existing file, and waits for other processes until the timeout.
#[expect(clippy::disallowed_methods, reason = "SQLite reports no end of a lock")]
pub(super) fn open_in_time(
    path: &Path,
    usage: FileUse,
    timeout: Duration,
) -> Result<Opened, Problem> {
    if let Some(objection) = check_believed(path)? {
        tracing::warn!("{objection}");
    }
    let start = Instant::now();
    loop {
        match open(path, usage, timeout) {
            // SQLite does not wait for another process before it switches the file to a log.
            Err(Problem::Locked) if start.elapsed() < timeout => thread::sleep(LOCKED_PAUSE),
            opened => return opened,
        }
    }
}

fn open(path: &Path, usage: FileUse, timeout: Duration) -> Result<Opened, Problem> {
    let before = Identity::of(path, usage).ok();
    check_names(path, usage)?;
    // A connection that may write would write the log into a file that is refused, and remove the log.
    let (checked, compared) = match connect_checked(path, FileUse::Read, timeout) {
        Err(Problem::NotWritable(_) | Problem::Journal) if usage != FileUse::Read => {
            connect_checked(path, usage, timeout)?
        }
        checked => checked?,
    };
    let SchemaComparison {
        pending,
        newer,
        is_new,
        ..
    } = compared;
    // Another process is creating it. One that is empty was left by a start that was killed.
    let is_created =
        usage != FileUse::Read && is_new && path.metadata().is_ok_and(|file| file.len() > 0);
    if !pending.is_empty() && usage != FileUse::Create && !is_created {
        return Err(Problem::Pending(pending));
    }
    log_expansions(path, &newer);
    let mut connection = if usage == FileUse::Read {
        checked
    } else {
        connect_to_write(path, timeout)?
    };
    let identity = Identity::of(path, usage)?;
    check_believed(path)?;
    // The log alone may differ.
    if before.is_none_or(|before| before.inodes.file != identity.inodes.file) {
        return Err(Problem::Replaced);
    }
    let migrations = if pending.is_empty() {
        pending
    } else {
        schema::migrate(&mut connection)?
    };
    let header = OpenHeader::open(path)?;
    let log = match usage {
        FileUse::Read => None,
        _ => Some(OpenLog::open(path)?),
    };
    let file = OpenFile {
        path: path.to_owned(),
        usage,
        timeout,
        identity,
        header,
        log,
        in_place: AtomicBool::new(true),
        connection: Mutex::new(Some(connection)),
    };
    Ok(Opened {
        file: SqliteFile(Arc::new(file)),
        migrations,
    })
}

fn log_expansions(path: &Path, newer: &[String]) {
    if !newer.is_empty() {
        let migrations = newer.join(", ");
        tracing::warn!(file = %path.display(), migrations, "a newer program has expanded the schema");
    }
}
