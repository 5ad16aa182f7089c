use std::{
    path::{PathBuf, absolute},
    time::Duration,
};

use animal_store_adapters_sqlite::SqliteSettings;

use crate::config::{
    key::{Key, keys},
    values::{Values, duration, number},
};

keys! {
    PATH: new("storage.sqlite.path", "animal-store.db",
        "File of the backends `sqlite`. A relative path begins at the working directory. The first start creates the \
         file, which only its owner can read; see [SQLite](operations/sqlite.md).");
    TIMEOUT: new("storage.sqlite.timeout", "2s",
        "Timeout for the time of a request in the queue, and for each wait for another process that writes to the \
         file. After it, requests get 503.");
    MAX_WAITING_READS: new("storage.sqlite.max_waiting_reads", "2000",
        "Maximum number of reads that a worker keeps in a queue while earlier reads are in flight. Further reads get 503 \
         `overloaded` at once.");
    MAX_WAITING_CREATES: new("storage.sqlite.max_waiting_creates", "1000",
        "Maximum number of creates in the queue. Further creates get 503 `overloaded` at once.");
}

/// The file of pets and API keys, and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct SqliteConfig {
    /// Absolute path.
    pub(crate) path: PathBuf,
    pub(crate) settings: SqliteSettings,
}

impl SqliteConfig {
    pub(super) fn read(values: &mut Values, idempotency_retention: Duration) -> Self {
        let path = values.read(&PATH, |path| match path {
            "" => Err("the path of a file".to_owned()),
            // Without a working directory, opening the file is the error.
            path => Ok(absolute(path).unwrap_or_else(|_| path.into())),
        });
        let settings = SqliteSettings {
            timeout: values.read(&TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_mins(1))),
            max_waiting_reads: values.read(&MAX_WAITING_READS, number(1..=100_000)),
            max_waiting_creates: values.read(&MAX_WAITING_CREATES, number(1..=100_000)),
            idempotency_retention,
        };
        Self { path, settings }
    }
}
