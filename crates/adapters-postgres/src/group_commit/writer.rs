use std::{sync::Arc, time::Duration};

use animal_store_app::ports::{AddError, StorageError};
use animal_store_domain::PetId;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::{
    insert::{Failure, WriteSession},
    queue::{Create, Queue},
};
use crate::{
    PgEndpoint,
    link::{Link, Open, READ_ONLY},
};

/// The most animals that one statement adds.
const MAX_BATCH: usize = 1000;

/// Empties the queue, batch after batch.
pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    pub(super) link: Arc<Link<WriteSession>>,
    pub(super) endpoint: PgEndpoint,
    pub(super) patience: Duration,
}

impl Writer {
    pub(super) async fn run(self) {
        // Whatever ends this, nobody may wait for it any more.
        let _abandons = Abandons(&self.queue);
        while let Some(batch) = self.queue.take(MAX_BATCH).await {
            // However often a batch is halved, those behind it get their turn.
            let deadline = Instant::now() + self.patience * 2;
            let mut parts = vec![batch];
            while let Some(part) = parts.pop() {
                if Instant::now() > deadline {
                    fail(part, || StorageError::Deadline.into());
                    continue;
                }
                match self.link.session().await {
                    Ok(open) => parts.extend(self.add(part, &open).await),
                    Err(error) => fail(part, || StorageError::from(error).into()),
                }
            }
        }
    }

    /// Adds all of these in one commit, and answers them; returns what is to be tried again in smaller parts, the
    /// sooner of them last.
    async fn add(&self, mut part: Vec<Create>, open: &Open<WriteSession>) -> Vec<Vec<Create>> {
        match self.insert(&part, open).await {
            Ok(ids) => part.into_iter().zip(ids).for_each(|(create, id)| create.done(id)),
            Err(Failure::Refused(code, _)) if is_about_the_data(&code) && part.len() > 1 => {
                let later = part.split_off(part.len() / 2);
                return vec![later, part];
            }
            Err(Failure::Refused(code, reason)) => {
                if code == SqlState::READ_ONLY_SQL_TRANSACTION {
                    open.give_up(READ_ONLY);
                }
                fail(part, || refused(&code, &reason).into());
            }
            Err(Failure::NotSent(reason)) => {
                open.give_up("it could not begin a transaction");
                fail(part, || StorageError::Unavailable(reason.clone().into()).into());
            }
            Err(Failure::Unknown(reason)) => {
                open.give_up("it did not say what became of a commit");
                self.cancel(open);
                fail(part, || AddError::OutcomeUnknown(reason.clone().into()));
            }
        }
        Vec::new()
    }

    /// In one commit, tried twice where others were in the way.
    async fn insert(&self, part: &[Create], open: &Open<WriteSession>) -> Result<Vec<Option<PetId>>, Failure> {
        let pets: Vec<_> = part.iter().map(|create| &create.pet).collect();
        match open.session.insert(&pets, self.patience).await {
            Err(Failure::Refused(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED, _)) => {
                open.session.insert(&pets, self.patience).await
            }
            outcome => outcome,
        }
    }

    /// A commit that waits for a standby does not notice that nobody waits for it: one after the other, such would take
    /// up all connections that the server has.
    fn cancel(&self, open: &Open<WriteSession>) {
        let (endpoint, token, patience) = (self.endpoint.clone(), open.session.cancel_token(), self.patience);
        tokio::spawn(async move { endpoint.cancel(token, patience).await });
    }
}

/// Data exceptions and broken constraints: one row spoils it for the others.
fn is_about_the_data(code: &SqlState) -> bool {
    code.code().starts_with("22") || code.code().starts_with("23")
}

fn refused(code: &SqlState, reason: &str) -> StorageError {
    match *code {
        SqlState::QUERY_CANCELED => StorageError::Deadline,
        _ => StorageError::Unavailable(reason.into()),
    }
}

fn fail(part: Vec<Create>, error: impl Fn() -> AddError) {
    for create in part {
        create.fail(error());
    }
}

struct Abandons<'a>(&'a Queue);

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
