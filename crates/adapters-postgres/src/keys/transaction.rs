use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{Row, Sql, Value};
use animal_store_app::{from_milliseconds, milliseconds, ports::StoreResult};
use tokio::runtime::Handle;
use tokio_postgres::types::{FromSql, Type};

use crate::{
    error::invalid_row,
    transaction::{Parameter, TransactionConnection, parse},
};

/// A transaction that has begun. It blocks the current thread.
pub(super) struct Transaction {
    pub(super) connection: TransactionConnection,
    /// Timeout of a statement.
    pub(super) timeout: Duration,
    pub(super) runtime: Handle,
}

impl Sql for Transaction {
    fn rows(&mut self, statement: &str, values: &[Value]) -> StoreResult<Vec<Row>> {
        let parameters: Vec<_> = values.iter().map(parameter).collect();
        let query = self
            .connection
            .query_within(self.timeout, statement, &parameters);
        let rows = self.runtime.block_on(query)?;
        rows.iter().map(row_of).collect()
    }

    fn row_lock(&self) -> &'static str {
        "FOR UPDATE"
    }

    fn now(&mut self) -> StoreResult<SystemTime> {
        let query = self.connection.query_one("SELECT clock_timestamp()", &[]);
        let now: SystemTime = parse(&self.runtime.block_on(query)?, 0)?;
        Ok(from_milliseconds(milliseconds(now)))
    }
}

fn parameter(value: &Value) -> Parameter<'_> {
    match value {
        Value::Null => (&None::<i64>, Type::INT8),
        Value::Integer(number) => (number, Type::INT8),
        Value::Text(text) => (text, Type::TEXT),
        Value::Bytes(bytes) => (bytes, Type::BYTEA),
    }
}

/// Returns the values of a row. The store of keys has columns of no other types.
pub(super) fn row_of(row: &tokio_postgres::Row) -> StoreResult<Row> {
    let mut values = Vec::new();
    for (index, column) in row.columns().iter().enumerate() {
        values.push(match *column.type_() {
            Type::INT2 => value(row, index, |number: i16| Value::Integer(number.into()))?,
            Type::INT8 => value(row, index, Value::Integer)?,
            Type::BYTEA => value(row, index, Value::Bytes)?,
            Type::TEXT => value(row, index, Value::Text)?,
            _ => Value::Null,
        });
    }
    Ok(Row::new(values))
}

fn value<'a, T: FromSql<'a>>(
    row: &'a tokio_postgres::Row,
    index: usize,
    value: impl Fn(T) -> Value,
) -> StoreResult<Value> {
    let found: Option<T> = row.try_get(index).map_err(invalid_row)?;
    Ok(found.map_or(Value::Null, value))
}
