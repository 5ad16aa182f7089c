use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use diesel::connection::SimpleConnection;
use tokio::sync::mpsc;

use super::read::Read;
use crate::{SqliteFile, SqliteFileError, file::FileConnection, queue::Queue};

/// Number of threads that read.
pub(super) const THREADS: usize = 4;

/// Greatest number of reads that a thread takes at once.
const MAX_SHARE: usize = 16;

/// A thread that reads, with its own connection.
pub(super) struct Reader {
    file: SqliteFile,
    connection: Option<FileConnection>,
    queue: Arc<Queue<Read>>,
}

impl Reader {
    /// Starts the thread. It holds `running` until it ends.
    pub(super) fn start(
        file: &SqliteFile,
        queue: Arc<Queue<Read>>,
        running: mpsc::Sender<()>,
    ) -> Result<(), SqliteFileError> {
        let connection = Some(file.connect()?);
        let mut reader = Self { file: file.clone(), connection, queue };
        let run = move || {
            while let Some(reads) = reader.queue.take_share(THREADS, MAX_SHARE) {
                reader.execute_all(reads);
            }
            drop(reader);
            drop(running);
        };
        let spawned = thread::Builder::new().name("sqlite-reader".to_owned()).spawn(run);
        spawned.map(drop).map_err(|error| file.unavailable(&error))
    }

    /// Executes reads in one transaction, which costs less than one for each. It begins after they were taken, so it
    /// contains each pet that was confirmed before them.
    fn execute_all(&mut self, reads: Vec<Read>) {
        let shares_transaction = reads.len() > 1;
        if shares_transaction {
            self.control("BEGIN");
        }
        for read in reads {
            self.execute(read);
        }
        if shares_transaction {
            self.control("COMMIT");
        }
    }

    fn control(&mut self, statement: &str) {
        let failed = |connection: &mut FileConnection| connection.batch_execute(statement).is_err();
        if self.connection.as_mut().is_some_and(failed) {
            self.connection = None;
        }
    }

    fn execute(&mut self, read: Read) {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => match self.file.connect() {
                Ok(connection) => none.insert(connection),
                Err(error) => return read.fail(error.into()),
            },
        };
        // A panic must not end the thread. It drops the channel, so the client gets an error.
        if !catch_unwind(AssertUnwindSafe(|| read.execute(connection))).unwrap_or(false) {
            self.connection = None;
        }
    }
}
