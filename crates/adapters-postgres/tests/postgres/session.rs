//! A session of the server's beside those of the storage.

use std::time::Instant;

use animal_store_test_servers::PgDatabase;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::calls::{PATIENCE, a_moment};

pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Session {
    pub(crate) async fn of(database: &PgDatabase) -> Self {
        Self::at(database.url()).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
        let driver = tokio::spawn(async { drop(connection.await) });
        Self { client, driver }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The first column, as text.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        let messages = self.client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let row = |message| if let tokio_postgres::SimpleQueryMessage::Row(row) = message { Some(row) } else { None };
        messages.into_iter().filter_map(row).map(|row| row.get(0).unwrap_or("NULL").to_owned()).collect()
    }

    pub(crate) async fn count(&self, sql: &str) -> usize {
        self.column(&format!("SELECT count(*) FROM {sql}")).await[0].parse().expect("a number")
    }

    /// From here on, nobody reads or adds animals.
    pub(crate) async fn lock(&self) {
        self.run("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE").await;
    }

    /// Until so many statements wait for the lock.
    pub(crate) async fn wait_for_waiting(&self, expected: usize) {
        let waiting = "pg_locks WHERE NOT granted AND relation = 'pets'::regclass \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let start = Instant::now();
        while self.count(waiting).await != expected {
            assert!(start.elapsed() < PATIENCE, "{expected} statements do not come to wait");
            a_moment().await;
        }
    }

    /// Until so many statements wait for locks of this kind.
    pub(crate) async fn wait_for_locks(&self, kind: &str, expected: usize) {
        self.wait_for_count(&format!("wait_event_type = 'Lock' AND wait_event = '{kind}'"), expected).await;
    }

    /// Until so many statements wait for locks of whatever kind.
    pub(crate) async fn wait_for_waiting_locks(&self, expected: usize) {
        self.wait_for_count("wait_event_type = 'Lock'", expected).await;
    }

    async fn wait_for_count(&self, what: &str, expected: usize) {
        let start = Instant::now();
        while self.count(&format!("pg_stat_activity WHERE {what} AND datname = current_database()")).await != expected {
            assert!(start.elapsed() < PATIENCE, "{expected} statements do not come to wait");
            a_moment().await;
        }
    }

    /// Until a statement sleeps.
    pub(crate) async fn wait_for_sleep(&self) {
        let start = Instant::now();
        let sleeping = "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while self.count(sleeping).await == 0 {
            assert!(start.elapsed() < PATIENCE, "nothing sleeps");
            a_moment().await;
        }
    }

    pub(crate) async fn unlock(&self) {
        self.run("COMMIT").await;
    }

    /// The processes of the server that serve the storage.
    pub(crate) async fn backends(&self) -> Vec<String> {
        let ours = "application_name = 'animal-store' AND datname = current_database()";
        self.column(&format!("SELECT pid FROM pg_stat_activity WHERE {ours} ORDER BY pid")).await
    }

    /// Ends them, and returns how many there were.
    pub(crate) async fn terminate_backends(&self) -> usize {
        let backends = self.backends().await;
        self.column(&format!("SELECT pg_terminate_backend(pid) FROM unnest('{{{}}}'::int[]) pid", backends.join(",")))
            .await;
        backends.len()
    }

    /// Until none of these processes is left: what they were doing is done or never will be.
    pub(crate) async fn wait_for_the_end_of(&self, backends: &[String]) {
        let start = Instant::now();
        while self.backends().await.iter().any(|pid| backends.contains(pid)) {
            assert!(start.elapsed() < PATIENCE, "they do not end");
            a_moment().await;
        }
    }

    pub(crate) async fn wait_for_backends(&self, count: usize) {
        let start = Instant::now();
        while self.backends().await.len() != count {
            assert!(start.elapsed() < PATIENCE, "there do not come to be {count} connections");
            a_moment().await;
        }
    }

    /// How many animals have this name.
    pub(crate) async fn named(&self, name: &str) -> usize {
        self.count(&format!("pets WHERE name = '{name}'")).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
