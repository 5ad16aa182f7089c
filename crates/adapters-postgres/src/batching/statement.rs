use std::iter::zip;

use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

use crate::PostgresSettings;

/// The value of a parameter.
pub(crate) type Value<'a> = &'a (dyn ToSql + Sync);

/// The text of a statement, and the types of its parameters.
pub(crate) struct Query {
    pub(crate) text: String,
    pub(crate) types: Vec<Type>,
}

/// A statement that a session executes many times.
pub(crate) enum SessionStatement {
    Prepared(Statement),
    /// Behind a pooler: nothing stays on the server's connection.
    Unprepared(Query),
}

impl SessionStatement {
    /// Prepares the statement, unless a pooler assigns a server connection to each transaction.
    pub(crate) async fn new(
        client: &Client,
        query: Query,
        settings: &PostgresSettings,
    ) -> Result<Self, Error> {
        if settings.transaction_pooling {
            return Ok(Self::Unprepared(query));
        }
        let prepared = client.prepare_typed(&query.text, &query.types);
        Ok(Self::Prepared(prepared.await?))
    }

    pub(crate) async fn query(
        &self,
        client: &Client,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Error> {
        match self {
            Self::Prepared(statement) => client.query(statement, values).await,
            Self::Unprepared(Query { text, types }) => {
                let mut typed = Vec::with_capacity(values.len());
                for (value, value_type) in zip(values, types) {
                    typed.push((*value, value_type.clone()));
                }
                client.query_typed(text, &typed).await
            }
        }
    }
}
