//! A session of the server beside those of the storage.

use std::{future::poll_fn, ops::Deref};

use animal_store_app::test_support::wait_until;
use animal_store_test_servers::PgDatabase;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

/// Statements that wait for the lock of the table.
const WAITING: &str = "pg_locks WHERE NOT granted AND relation = 'pets'::regclass \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

pub(crate) struct SqlSession {
    client: Client,
    notifications: UnboundedReceiver<String>,
}

/// A session is used like its client.
impl Deref for SqlSession {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl SqlSession {
    pub(crate) async fn of(database: &PgDatabase) -> Self {
        Self::at(database.url()).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        let connected = tokio_postgres::connect(url, NoTls).await;
        let (client, mut connection) = connected.expect("connected");
        let (sender, notifications) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message {
                    // The test may have ended.
                    let _ = sender.send(notification.payload().to_owned());
                }
            }
        });
        Self {
            client,
            notifications,
        }
    }

    /// The next notification, in the order of their commits.
    pub(crate) async fn notification(&mut self) -> String {
        self.notifications.recv().await.expect("a notification")
    }

    pub(crate) async fn run(&self, sql: &str) {
        let ran = self.batch_execute(sql).await;
        ran.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Runs a statement in the open transaction, which goes on. Returns whether it succeeded.
    pub(crate) async fn permits(&self, sql: &str) -> bool {
        self.run("SAVEPOINT before").await;
        let is_permitted = self.batch_execute(sql).await.is_ok();
        if !is_permitted {
            self.run("ROLLBACK TO before").await;
        }
        is_permitted
    }

    /// Returns the first column, as text.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        let messages = self.simple_query(sql).await;
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let mut values = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                values.push(row.get(0).unwrap_or("NULL").to_owned());
            }
        }
        values
    }

    pub(crate) async fn count(&self, sql: &str) -> usize {
        let count = self.column(&format!("SELECT count(*) FROM {sql}")).await;
        count[0].parse().expect("a number")
    }

    /// Returns the number of pets with this name.
    pub(crate) async fn named(&self, name: &str) -> usize {
        self.count(&format!("pets WHERE name = '{name}'")).await
    }

    /// Waits until this number of rows is found.
    pub(crate) async fn wait_for_rows(&self, sql: &str, expected: usize) {
        let what = format!("{expected} rows of {sql}");
        wait_until(&what, async || self.count(sql).await == expected).await;
    }

    /// Keeps all other sessions from reading and adding pets, until [`unlock`](Self::unlock).
    pub(crate) async fn lock(&self) {
        self.run("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
            .await;
    }

    pub(crate) async fn unlock(&self) {
        self.run("COMMIT").await;
    }

    /// Begins a call behind a lock, and waits until its statement waits for the lock.
    pub(crate) async fn block<T>(&self, begin: impl FnOnce() -> T) -> T {
        self.lock().await;
        let call = begin();
        self.wait_for_table_locks(1).await;
        call
    }

    /// Waits until this number of statements wait for the lock of the table.
    pub(crate) async fn wait_for_table_locks(&self, expected: usize) {
        self.wait_for_rows(WAITING, expected).await;
    }

    /// Waits until this number of statements wait for locks of this kind.
    pub(crate) async fn wait_for_locks(&self, kind: &str, expected: usize) {
        let ours = "datname = current_database() AND wait_event_type = 'Lock'";
        let waiting = format!("pg_stat_activity WHERE {ours} AND wait_event LIKE '{kind}'");
        self.wait_for_rows(&waiting, expected).await;
    }

    /// Returns the process ids of the server's processes for the storage.
    pub(crate) async fn backends(&self) -> Vec<String> {
        let ours = "application_name LIKE 'animal-store%' AND datname = current_database()";
        let pids = format!("SELECT pid FROM pg_stat_activity WHERE {ours} ORDER BY pid");
        self.column(&pids).await
    }

    pub(crate) async fn wait_for_backends(&self, count: usize) {
        let what = format!("{count} backends");
        wait_until(&what, async || self.backends().await.len() == count).await;
    }

    /// Terminates the backends and returns their process ids.
    pub(crate) async fn terminate_backends(&self) -> Vec<String> {
        let backends = self.backends().await;
        let pids = backends.join(",");
        let terminate = "SELECT pg_terminate_backend(pid) FROM unnest";
        self.run(&format!("{terminate}('{{{pids}}}'::int[]) pid"))
            .await;
        backends
    }

    /// Waits until none of these backends is left: their statements have ended.
    pub(crate) async fn wait_until_ended(&self, backends: &[String]) {
        let ended = async || {
            let left = self.backends().await;
            !left.iter().any(|pid| backends.contains(pid))
        };
        wait_until("the backends end", ended).await;
    }

    /// Terminates the backends, and waits until they have ended.
    pub(crate) async fn end_backends(&self) {
        let backends = self.terminate_backends().await;
        self.wait_until_ended(&backends).await;
    }
}
