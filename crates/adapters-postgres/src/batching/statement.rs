use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

use crate::PostgresSettings;

/// The value of a parameter.
pub(crate) type Value<'a> = &'a (dyn ToSql + Sync);

/// A statement that a session executes many times.
pub(crate) enum SessionStatement {
    Prepared(Statement),
    /// Behind a pooler: nothing stays on the server's connection.
    Unprepared {
        text: String,
        types: Vec<Type>,
    },
}

impl SessionStatement {
    /// Prepares the statement, unless a pooler assigns a server connection to each transaction.
    pub(crate) async fn new(
        client: &Client,
        (text, types): (String, Vec<Type>),
        settings: &PostgresSettings,
    ) -> Result<Self, Error> {
        Ok(if settings.transaction_pooling {
            Self::Unprepared { text, types }
        } else {
            Self::Prepared(client.prepare_typed(&text, &types).await?)
        })
    }

    pub(crate) async fn query(
        &self,
        client: &Client,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Error> {
        match self {
            Self::Prepared(statement) => client.query(statement, values).await,
            Self::Unprepared { text, types } => {
                let typed: Vec<_> = values.iter().copied().zip(types.iter().cloned()).collect();
                client.query_typed(text, &typed).await
            }
        }
    }
}
