//! API keys in the file: its transactions for the [store](SqlApiKeyStore) that it shares with PostgreSQL.
//!
//! **Problem.** Other processes change keys while this one serves requests, and SQLite notifies no process of a change.
//!
//! **Invariant.** A change holds the write lock from its beginning, and a file that was moved gets no commit. A
//! directory reads one row of the file to find that nothing has changed. Times are those of this machine.
//!
//! **Proof.** The contract suites of keys; in `tests/sqlite`: `keys.rs`, `moved.rs` and `full_disk.rs`.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{
    Access, KeyCheck, KeyDatabase, KeySession, KeySource, KeyState, Row, Sql, SqlApiKeyStore,
    Value, read_delta,
};
use animal_store_app::ports::{ApiKeyStore, StoreFailure, StoreResult};
use diesel::{
    connection::SimpleConnection,
    deserialize,
    prelude::*,
    row::{Field, NamedRow},
    sql_query,
    sql_types::{BigInt, Binary, Nullable, Text},
    sqlite::{Sqlite, SqliteType},
};

use crate::{SqliteFile, backup::time_of_backup, session::Session};

/// Changes and lists API keys in a file.
pub type SqliteApiKeyStore = SqlApiKeyStore<SqliteFile>;

impl SqliteFile {
    /// Warns if the file is a backup that no service has used, and removes its mark if the file can be written.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn warn_of_backup(&self) -> Result<(), StoreFailure> {
        let session = Session::new(self);
        let Some(time) = session.read(time_of_backup).await? else {
            return Ok(());
        };
        let keys = SqliteApiKeyStore::new(self.clone()).list().await;
        // An invalid key does not prevent a start: there is no list then.
        let records = keys.ok().map(|keys| keys.len());
        tracing::warn!(
            time,
            records,
            "this store is a backup: API keys that were revoked since then are valid again, revoke them once more"
        );
        if self.is_writable() {
            let remove = |connection: &mut SqliteConnection| {
                connection.batch_execute("DROP TABLE backup_times")
            };
            session.change(remove).await?;
        }
        Ok(())
    }
}

impl KeyDatabase for SqliteFile {
    type Session = Session;

    fn session(&self) -> Session {
        Session::new(self)
    }

    fn timeout(&self) -> Duration {
        self.timeout()
    }
}

impl KeySession for Session {
    async fn transact<T: Send + 'static>(
        &mut self,
        access: Access,
        work: impl FnOnce(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let work = |connection: &mut SqliteConnection| work(&mut Transaction(connection));
        Ok(match access {
            Access::Read => self.read(work).await?,
            Access::Write => self.change(work).await?,
        })
    }

    async fn check_writable(&mut self) -> StoreResult<()> {
        Ok(self.try_change().await?)
    }
}

impl KeySource for Session {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        self.file.path().display().to_string()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        let known = known.cloned();
        let delta = self
            .transact(Access::Read, move |sql| read_delta(sql, known.as_ref()))
            .await;
        Ok(KeyCheck {
            delta: delta.map_err(|failure| failure.reason())?,
            now: SystemTime::now(),
        })
    }
}

/// A transaction that has begun.
struct Transaction<'a>(&'a mut SqliteConnection);

impl Sql for Transaction<'_> {
    fn rows(&mut self, statement: &str, values: &[Value]) -> StoreResult<Vec<Row>> {
        // To SQLite, `$1` is a name, and names are numbered as they first occur; `?1` is the first value.
        let mut query = sql_query(statement.replace('$', "?")).into_boxed::<Sqlite>();
        for value in values {
            query = match value {
                Value::Null => query.bind::<Nullable<BigInt>, _>(None::<i64>),
                Value::Integer(number) => query.bind::<BigInt, _>(*number),
                Value::Text(text) => query.bind::<Text, _>(text),
                Value::Bytes(bytes) => query.bind::<Binary, _>(bytes),
            };
        }
        let rows = query.load::<SqliteRow>(self.0);
        // A failure keeps the bare message, by which `Problem::from` classifies it.
        let rows = rows.map_err(|error| StoreFailure::Unavailable(error.to_string().into()))?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    fn row_lock(&self) -> &'static str {
        ""
    }

    fn now(&mut self) -> StoreResult<SystemTime> {
        Ok(SystemTime::now())
    }
}

/// The values of a row, by the types that SQLite has stored.
struct SqliteRow(Row);

impl QueryableByName<Sqlite> for SqliteRow {
    fn build<'a>(row: &impl NamedRow<'a, Sqlite>) -> deserialize::Result<Self> {
        let mut values = Vec::new();
        for column in 0..row.field_count() {
            let field = diesel::row::Row::get(row, column).ok_or("a column is missing")?;
            let value = match field.value() {
                None => Value::Null,
                Some(mut value) => match value.value_type() {
                    Some(SqliteType::Text) => Value::Text(value.read_text().to_owned()),
                    Some(SqliteType::Binary) => Value::Bytes(value.read_blob().to_owned()),
                    Some(_) => Value::Integer(value.read_long()),
                    None => Value::Null,
                },
            };
            values.push(value);
        }
        Ok(Self(Row::new(values)))
    }
}
