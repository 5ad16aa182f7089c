//! Adds a batch in one commit, and says what a failure means.

use std::cmp::Ordering;

use animal_store_app::ports::{AddPetError, AddedPet, StoreFailure};
use tokio::time::timeout;
use tokio_postgres::{Row, error::SqlState};

use super::{
    add_request::{AddRequest, AddResult},
    session::AddSession,
};
use crate::{
    batching::{BatchError, Failure, Request, Split},
    connection::{Connection, ConnectionSettings, NO_RESPONSE, READ_ONLY},
    error::{describe, refusal},
};

impl<R: AddRequest> Request for R {
    type Session = AddSession<R>;
    /// `None` if a database trigger suppressed the row.
    type Outcome = Option<R::Stored>;
    type Response = AddedPet;
    type Error = AddPetError;

    const MAX_ROWS: usize = 1000;
    const OUTCOME_MATTERS: bool = true;

    fn rows(&self) -> usize {
        1
    }

    fn order(one: &Self, other: &Self) -> Ordering {
        R::lock_order(one, other)
    }

    /// Retries once after a conflict with another transaction. The timeout applies to each response of the server.
    async fn execute(
        requests: &[&Self],
        connection: &Connection<AddSession<R>>,
        settings: &ConnectionSettings,
    ) -> Result<Vec<Option<R::Stored>>, Failure> {
        let (session, limit) = (&connection.session, settings.postgres.timeout);
        let outcome_unknown = |reason: String| {
            connection.mark_broken("the connection did not report the outcome of a commit");
            settings.metrics.unknown_outcomes.inc_by(requests.len() as u64);
            cancel(session, settings);
            Failure::from(BatchError::OutcomeUnknown(reason))
        };
        let mut is_retry = false;
        loop {
            session.begin(limit).await.map_err(|reason| {
                connection.mark_broken("the connection could not begin a transaction");
                BatchError::Unavailable(reason)
            })?;
            let added = timeout(limit, session.add(requests)).await;
            let error = match added.map_err(|_| outcome_unknown(NO_RESPONSE.to_owned()))? {
                Ok(rows) => {
                    settings.metrics.commits.inc();
                    let stored = by_position::<R>(&rows, requests.len());
                    return stored.ok_or_else(|| outcome_unknown("the statement returned an invalid row".to_owned()));
                }
                Err(error) => error,
            };
            match refusal(&error).cloned() {
                None => return Err(outcome_unknown(describe(&error))),
                Some(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED) if !is_retry => {}
                Some(SqlState::QUERY_CANCELED) => return Err(BatchError::Timeout.into()),
                Some(code) => {
                    if code == SqlState::READ_ONLY_SQL_TRANSACTION {
                        connection.mark_broken(READ_ONLY);
                    }
                    let error = BatchError::Unavailable(settings.endpoint.locate(error).to_string());
                    return Err(Failure { error, split: split(&code) });
                }
            }
            is_retry = true;
        }
    }

    fn result(self, stored: Option<R::Stored>) -> AddResult {
        match stored {
            Some(stored) => self.added(stored),
            None => Err(StoreFailure::Unavailable("a trigger suppressed the row".into()).into()),
        }
    }
}

/// How to add a batch again that PostgreSQL refused because of one row, which is alone after a few splits.
fn split(code: &SqlState) -> Option<Split> {
    match code.code().get(..2) {
        Some("22" | "23") => Some(Split { parts: 2, last: false }),
        // Each of these batches may wait for a lock again: there are few of them, and they come after all others.
        _ if *code == SqlState::LOCK_NOT_AVAILABLE => Some(Split { parts: 8, last: true }),
        _ => None,
    }
}

/// Returns the stored results by position; `None` if a row is not valid.
fn by_position<R: AddRequest>(rows: &[Row], count: usize) -> Option<Vec<Option<R::Stored>>> {
    let mut stored: Vec<_> = (0..count).map(|_| None).collect();
    for row in rows {
        let position: i64 = row.try_get(0).ok()?;
        *stored.get_mut(usize::try_from(position - 1).ok()?)? = Some(R::stored(row)?);
    }
    Some(stored)
}

/// Cancels the statement of a broken connection. A commit that waits for a standby does not notice that its client has
/// disconnected; such commits would use up all connections of the server.
fn cancel<R: AddRequest>(session: &AddSession<R>, settings: &ConnectionSettings) {
    let (endpoint, timeout) = (settings.endpoint.clone(), settings.postgres.timeout);
    let token = session.cancel_token();
    tokio::spawn(async move { endpoint.cancel(token, timeout).await });
}
