//! A session of the server beside those of the storage.

use std::future::poll_fn;

use animal_store_test_servers::PgDatabase;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use crate::outcomes::wait_until;

/// Statements that wait for the lock of the table.
const WAITING: &str = "pg_locks WHERE NOT granted AND relation = 'pets'::regclass \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

pub(crate) struct SqlSession(Client);

impl SqlSession {
    pub(crate) async fn of(database: &PgDatabase) -> Self {
        Self::at(database.url()).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        Self(client(url).await)
    }

    /// A session that also receives the notifications of a channel, in the order of their commits.
    pub(crate) async fn listening(
        database: &PgDatabase,
        channel: &str,
    ) -> (Self, UnboundedReceiver<String>) {
        let (client, mut connection) = tokio_postgres::connect(database.url(), NoTls)
            .await
            .expect("connected");
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message {
                    // The test may have ended.
                    let _ = sender.send(notification.payload().to_owned());
                }
            }
        });
        client
            .batch_execute(&format!("LISTEN {channel}"))
            .await
            .expect("listening");
        (Self(client), receiver)
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.0
            .batch_execute(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Runs a statement, and returns whether it succeeded.
    pub(crate) async fn permits(&self, sql: &str) -> bool {
        self.0.batch_execute(sql).await.is_ok()
    }

    /// Returns the first column, as text.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        let messages = self
            .0
            .simple_query(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let row = |message| {
            if let SimpleQueryMessage::Row(row) = message {
                Some(row)
            } else {
                None
            }
        };
        messages
            .into_iter()
            .filter_map(row)
            .map(|row| row.get(0).unwrap_or("NULL").to_owned())
            .collect()
    }

    pub(crate) async fn count(&self, sql: &str) -> usize {
        self.column(&format!("SELECT count(*) FROM {sql}")).await[0]
            .parse()
            .expect("a number")
    }

    /// Waits until this number of rows is found.
    pub(crate) async fn wait_for_rows(&self, sql: &str, expected: usize) {
        wait_until(&format!("{expected} rows of {sql}"), async || {
            self.count(sql).await == expected
        })
        .await;
    }

    /// Keeps all other sessions from reading and adding pets, until [`unlock`](Self::unlock).
    pub(crate) async fn lock(&self) {
        self.run("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
            .await;
    }

    pub(crate) async fn unlock(&self) {
        self.run("COMMIT").await;
    }

    /// Waits until this number of statements wait for the lock of the table.
    pub(crate) async fn wait_for_table_locks(&self, expected: usize) {
        self.wait_for_rows(WAITING, expected).await;
    }

    /// Waits until this number of statements wait for locks of this kind.
    pub(crate) async fn wait_for_locks(&self, kind: &str, expected: usize) {
        let activity =
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.wait_for_rows(
            &format!("{activity} AND wait_event LIKE '{kind}'"),
            expected,
        )
        .await;
    }

    /// Returns the process ids of the server's processes for the storage.
    pub(crate) async fn backends(&self) -> Vec<String> {
        let ours = "application_name LIKE 'animal-store%' AND datname = current_database()";
        self.column(&format!(
            "SELECT pid FROM pg_stat_activity WHERE {ours} ORDER BY pid"
        ))
        .await
    }

    /// Terminates the backends and returns their process ids.
    pub(crate) async fn terminate_backends(&self) -> Vec<String> {
        let backends = self.backends().await;
        let pids = backends.join(",");
        self.column(&format!(
            "SELECT pg_terminate_backend(pid) FROM unnest('{{{pids}}}'::int[]) pid"
        ))
        .await;
        backends
    }

    /// Waits until none of these backends is left: their statements have ended.
    pub(crate) async fn wait_until_ended(&self, backends: &[String]) {
        let left = async || {
            self.backends()
                .await
                .iter()
                .any(|pid| backends.contains(pid))
        };
        wait_until("the backends end", async || !left().await).await;
    }

    pub(crate) async fn wait_for_backends(&self, count: usize) {
        wait_until(&format!("{count} backends"), async || {
            self.backends().await.len() == count
        })
        .await;
    }

    /// Returns the number of pets with this name.
    pub(crate) async fn named(&self, name: &str) -> usize {
        self.count(&format!("pets WHERE name = '{name}'")).await
    }
}

/// A client beside the storage.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("connected");
    tokio::spawn(connection);
    client
}
