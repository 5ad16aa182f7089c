use std::{collections::VecDeque, sync::Arc, time::Duration};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::{
    create::Create,
    queue::{Asked, Queue},
    session::{Failure, WriteSession},
};
use crate::{
    PgEndpoint,
    link::{Link, Open, READ_ONLY},
};

/// The most animals that one statement adds.
pub(crate) const MAX_BATCH: usize = 1000;

/// Into how many parts a batch is taken apart that waited for a lock too long: in four steps, its row stands alone.
const MAX_PARTS: usize = 8;

/// Empties the queue, batch after batch.
pub(super) struct Writer<C: Create> {
    pub(super) queue: Arc<Queue<C>>,
    pub(super) link: Arc<Link<WriteSession<C>>>,
    pub(super) endpoint: PgEndpoint,
    pub(super) patience: Duration,
}

impl<C: Create> Writer<C> {
    pub(super) async fn run(self) {
        // Whatever ends this, nobody may wait for it any more.
        let _abandons = Abandons(&self.queue);
        while let Some(mut batch) = self.queue.take(MAX_BATCH).await {
            batch.sort_by(|one, other| C::order(&one.create, &other.create));
            // However often a batch is taken apart, those behind it get their turn.
            let deadline = Instant::now() + self.patience * 2;
            let mut parts = VecDeque::from([batch]);
            while let Some(part) = parts.pop_front() {
                if Instant::now() > deadline {
                    fail(part, || StorageError::Timeout.into());
                    continue;
                }
                match self.link.session().await {
                    Ok(open) => self.add(part, &open, &mut parts).await,
                    Err(error) => fail(part, || StorageError::from(error).into()),
                }
            }
        }
    }

    /// Adds all of these in one commit, and answers them; where one may spoil it for the others, they are tried again in
    /// smaller parts.
    async fn add(&self, mut part: Vec<Asked<C>>, open: &Open<WriteSession<C>>, parts: &mut VecDeque<Vec<Asked<C>>>) {
        match self.insert(&part, open).await {
            Ok(outcomes) => part.into_iter().zip(outcomes).for_each(|(asked, outcome)| asked.done(outcome)),
            // Each part that has to wait takes its time: there are to be few of them, and after all others.
            Err(Failure::Refused(SqlState::LOCK_NOT_AVAILABLE, _)) if part.len() > 1 => {
                let size = part.len().div_ceil(MAX_PARTS);
                while part.len() > size {
                    parts.push_back(part.split_off(part.len() - size));
                }
                parts.push_back(part);
            }
            Err(Failure::Refused(code, _)) if is_about_one(&code) && part.len() > 1 => {
                parts.push_front(part.split_off(part.len() / 2));
                parts.push_front(part);
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
                fail(part, || AddPetError::OutcomeUnknown(reason.clone().into()));
            }
        }
    }

    /// In one commit, tried twice where others were in the way.
    async fn insert(
        &self,
        part: &[Asked<C>],
        open: &Open<WriteSession<C>>,
    ) -> Result<Vec<Option<C::Outcome>>, Failure> {
        let creates: Vec<_> = part.iter().map(|asked| &asked.create).collect();
        match open.session.insert(&creates, self.patience).await {
            Err(Failure::Refused(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED, _)) => {
                open.session.insert(&creates, self.patience).await
            }
            outcome => outcome,
        }
    }

    /// A commit that waits for a standby does not notice that nobody waits for it: one after the other, such would take
    /// up all connections that the server has.
    fn cancel(&self, open: &Open<WriteSession<C>>) {
        let (endpoint, token, patience) = (self.endpoint.clone(), open.session.cancel_token(), self.patience);
        tokio::spawn(async move { endpoint.cancel(token, patience).await });
    }
}

/// Data exceptions and broken constraints: one row spoils it for the others.
fn is_about_one(code: &SqlState) -> bool {
    code.code().starts_with("22") || code.code().starts_with("23")
}

fn refused(code: &SqlState, reason: &str) -> StorageError {
    match *code {
        SqlState::QUERY_CANCELED => StorageError::Timeout,
        _ => StorageError::Unavailable(reason.into()),
    }
}

fn fail<C: Create>(part: Vec<Asked<C>>, error: impl Fn() -> AddPetError) {
    for asked in part {
        asked.fail(error());
    }
}

struct Abandons<'a, C>(&'a Queue<C>);

impl<C> Drop for Abandons<'_, C> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
