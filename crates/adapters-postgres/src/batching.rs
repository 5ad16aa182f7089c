//! Many requests, one statement, on connections that stay up.
//!
//! **Problem.** A statement costs PostgreSQL and this process more than the rows that it reads or writes, and a commit
//! waits for the disk. A connection can end, freeze, or lead to a server that has become read-only, at any moment.
//! Requests must not wait for its replacement.
//!
//! **Invariant.** A **dispatcher** owns a connection and executes one batch at a time. One of the dispatchers takes
//! batches; if its batch is slow, the next one leaves on another connection. A batch takes all requests that wait, up
//! to a number of rows, before it is sent: a read sees every pet that was confirmed before it. A request that fails
//! alone does not fail the others of its batch. A dispatcher replaces a connection that is lost or does not respond,
//! with a backoff; if no dispatcher of a queue is connected, requests fail at once, except during the first attempt. It
//! replaces a session that refuses a statement which a new one may accept, and executes the batch again: what was
//! refused had no effect. A panic of a dispatcher ends the process.
//!
//! **Proof.** `tests.rs` (connections, panics), and in `tests/postgres`: `batches.rs` (creates, the end of a
//! dispatcher), `read_batches.rs` and `read_failures.rs` (reads), `faults.rs` (lost and frozen connections),
//! `keyed_records.rs` (metrics). The queue is tested in the kit of the adapters.

mod dispatcher;
mod execution;
mod failure;
mod replacement;
mod session;
mod statement;
#[cfg(test)]
mod tests;

use animal_store_adapter_kit::queue::{Sender, queue};
use futures_util::future::join_all;
use tokio::{select, task::JoinHandle};

pub(crate) use self::{
    failure::{Affected, Failure, Lost},
    session::{Connected, Executed, Session},
    statement::{Query, SessionStatement, Value},
};
use crate::{connection::ConnectionSettings, purpose::Purpose};

/// Creates the queue of this purpose, and starts its dispatchers on the current runtime, with a connection each. When
/// the sender is dropped, the dispatchers end.
pub(crate) fn batching<S: Session>(
    purpose: Purpose,
    settings: &ConnectionSettings,
) -> (Sender<S::Request>, Vec<JoinHandle<()>>) {
    // Longer than any batch that is executed once: two timeouts for its parts, and two attempts of three statements for
    // the last one.
    let outcome_timeout = purpose
        .changes_pets()
        .then(|| settings.postgres.timeout * 8);
    let capacity = purpose.capacity(&settings.postgres);
    let metrics = settings.metrics.queue(purpose).clone();
    let (sender, takers) = queue(capacity, outcome_timeout, metrics);
    (sender, dispatcher::start::<S>(purpose, takers, settings))
}

/// Starts a task that ends when these dispatchers have ended, or any task of the storage has panicked.
pub(crate) fn watch_over(
    dispatchers: Vec<JoinHandle<()>>,
    settings: &ConnectionSettings,
) -> JoinHandle<()> {
    let panics = settings.panics.clone();
    tokio::spawn(async move {
        select! {
            _ = join_all(dispatchers) => {}
            () = panics.first() => {}
        }
    })
}
