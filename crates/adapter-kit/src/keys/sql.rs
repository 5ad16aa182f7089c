//! What a database does for the store of keys: transactions, statements and values.

use std::{
    time::{Duration, SystemTime},
    vec::IntoIter,
};

use animal_store_app::ports::{StoreFailure, StoreResult};

use crate::KeySource;

/// A database with the tables of API keys.
pub trait KeyDatabase: Clone + Send + Sync + 'static {
    /// A connection to the database.
    type Session: KeySession;

    /// Returns a session of its own, which is not connected yet.
    fn session(&self) -> Self::Session;

    /// Returns the longest wait for another session.
    fn timeout(&self) -> Duration;
}

/// A connection, which is opened when it is needed and replaced after a failure. A directory follows the keys on it.
pub trait KeySession: KeySource {
    /// Runs work in one transaction, and commits. If the work fails, nothing is changed.
    fn transact<T: Send + 'static>(
        &mut self,
        access: Access,
        work: impl FnOnce(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> impl Future<Output = StoreResult<T>> + Send;

    /// Checks the permissions that an import needs. Writes nothing.
    fn check_writable(&mut self) -> impl Future<Output = StoreResult<()>> + Send;
}

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads one state of the database.
    Read,
    /// Writes a few rows. It sees the commits that it has waited for.
    Write,
}

/// A transaction.
pub trait Sql {
    /// Runs a statement. `$1` stands for the first value.
    ///
    /// # Errors
    /// See [`StoreFailure`]. The transaction cannot be continued.
    fn rows(&mut self, statement: &str, values: &[Value]) -> StoreResult<Vec<Row>>;

    /// Returns the end of a `SELECT` that locks its rows until the end of the transaction. It is empty if the
    /// transaction has the only lock.
    fn row_lock(&self) -> &'static str;

    /// Returns the present time of the store.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    fn now(&mut self) -> StoreResult<SystemTime>;
}

/// A value of a statement or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Absent. In a statement, it is in place of an integer.
    Null,
    /// A number, or a time.
    Integer(i64),
    /// A text.
    Text(String),
    /// A digest or a mark.
    Bytes(Vec<u8>),
}

/// The values of a row, in the order of the columns.
#[derive(Debug)]
pub struct Row(IntoIter<Value>);

impl Row {
    /// Creates a row of these values.
    pub fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    /// Returns the integer of the next column.
    pub(super) fn integer(&mut self) -> StoreResult<i64> {
        match self.next() {
            Value::Integer(number) => Ok(number),
            other => Err(other.is_not("an integer")),
        }
    }

    /// Returns the integer of the next column, which may be absent.
    pub(crate) fn optional_integer(&mut self) -> StoreResult<Option<i64>> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Integer(number) => Ok(Some(number)),
            other => Err(other.is_not("an integer")),
        }
    }

    /// Returns the text of the next column.
    pub(super) fn text(&mut self) -> StoreResult<String> {
        match self.next() {
            Value::Text(text) => Ok(text),
            other => Err(other.is_not("a text")),
        }
    }

    /// Returns the bytes of the next column, which may be absent.
    pub(super) fn optional_bytes(&mut self) -> StoreResult<Option<Vec<u8>>> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            other => Err(other.is_not("bytes")),
        }
    }

    fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Null)
    }
}

impl Value {
    fn is_not(&self, expected: &str) -> StoreFailure {
        corrupt(format!(
            "a column of the API keys has {self:?}, and not {expected}"
        ))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Integer)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_owned())
    }
}

pub(super) fn corrupt(reason: impl Into<String>) -> StoreFailure {
    StoreFailure::Corrupt(reason.into().into())
}
