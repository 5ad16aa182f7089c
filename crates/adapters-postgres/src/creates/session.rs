use std::{marker::PhantomData, time::Duration};

use tokio::time::timeout;
use tokio_postgres::{
    CancelToken, Client, Row, Statement,
    types::{ToSql, Type},
};

use super::add_request::AddRequest;
use crate::{
    PostgresSettings,
    connection::{NO_RESPONSE, Session},
    error::{ConnectionError, describe},
};

/// Overrides the default of the database. At a higher level, PostgreSQL refuses a statement that waited for the record
/// of another process, because the record is newer than the statement's snapshot.
const ISOLATION: &str = "READ COMMITTED";

/// A connection that adds batches. It does not use Diesel, which hides the SQLSTATEs that decide about the outcome.
pub(crate) struct AddSession<R> {
    client: Client,
    execution: Execution,
    request: PhantomData<fn(R)>,
}

enum Execution {
    /// The statement is a transaction.
    Prepared(Statement),
    /// Behind a pooler: nothing stays on the server's connection.
    InTransaction { begin: String, statement: String, types: Vec<Type> },
}

impl<R: AddRequest> Session for AddSession<R> {
    async fn prepare(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        let statement = R::statement(settings);
        let types: Vec<_> = R::columns().into_iter().map(|(_, array)| array).collect();
        let extra = |set| R::setting(settings).map_or_else(String::new, |setting| format!("; {set} {setting}"));
        let execution = if settings.transaction_pooling {
            let (set, extra) = (settings.set_statements("SET LOCAL"), extra("SET LOCAL"));
            let begin = format!("BEGIN ISOLATION LEVEL {ISOLATION}; {set}{extra}");
            Execution::InTransaction { begin, statement, types }
        } else {
            let isolation = format!("SET default_transaction_isolation = '{ISOLATION}'");
            client.batch_execute(&format!("{isolation}{}", extra("SET"))).await?;
            Execution::Prepared(client.prepare_typed(&statement, &types).await?)
        };
        warn_if_not_durable(&client, R::PURPOSE).await?;
        Ok(Self { client, execution, request: PhantomData })
    }
}

/// Warns about settings with which PostgreSQL confirms commits that a power failure undoes.
async fn warn_if_not_durable(client: &Client, purpose: &str) -> Result<(), ConnectionError> {
    for setting in ["fsync", "synchronous_commit"] {
        let row = client.query_typed_one("SELECT current_setting($1)", &[(&setting, Type::TEXT)]).await?;
        if row.try_get::<_, &str>(0)? == "off" {
            tracing::warn!(setting, purpose, "this setting of PostgreSQL is off: pets confirmed with 201 can be lost");
        }
    }
    Ok(())
}

impl<R: AddRequest> AddSession<R> {
    /// Begins a transaction, unless the statement is one.
    pub(super) async fn begin(&self, response_timeout: Duration) -> Result<(), String> {
        if self.client.is_closed() {
            return Err("the connection was closed".to_owned());
        }
        let Execution::InTransaction { begin, .. } = &self.execution else { return Ok(()) };
        let response = timeout(response_timeout, self.client.batch_execute(begin)).await;
        response.map_err(|_| NO_RESPONSE.to_owned())?.map_err(|error| describe(&error))
    }

    /// Adds a batch in one commit, after [`begin`](Self::begin). Rows may arrive before the commit, but the end of the
    /// response does not.
    pub(super) async fn add(&self, requests: &[&R]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let arrays = R::arrays(requests);
        let arrays = arrays.iter().map(|array| &**array as &(dyn ToSql + Sync));
        match &self.execution {
            Execution::Prepared(statement) => self.client.query(statement, &arrays.collect::<Vec<_>>()).await,
            Execution::InTransaction { statement, types, .. } => {
                let typed: Vec<_> = arrays.zip(types.iter().cloned()).collect();
                let inserted = self.client.query_typed(statement, &typed).await;
                let end = if inserted.is_ok() { "COMMIT" } else { "ROLLBACK" };
                let ended = self.client.batch_execute(end).await;
                let rows = inserted?;
                ended.map(|()| rows)
            }
        }
    }

    pub(super) fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }
}
