//! Creates, gathered.
//!
//! While one commit is on its way to disk, creates wait in a queue; then one statement adds all of them, in one commit.
//! A create leaves the queue when its client goes or its time is over; what was sent is left to finish.

mod create;
mod queue;
mod session;
mod writer;

use std::{sync::Arc, time::Duration};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    PostgresSettings,
    link::{Link, Opener},
};
pub(crate) use create::{Answer, Column, Create};
use queue::Queue;
pub(crate) use session::WriteSession;
#[cfg(test)]
pub(crate) use writer::MAX_BATCH;
use writer::Writer;

/// Adds animals by one connection. The writer ends when the last of these is dropped and all that waited is answered.
pub(crate) struct GroupCommit<C: Create>(Arc<Sender<C>>);

struct Sender<C: Create> {
    queue: Arc<Queue<C>>,
    link: Arc<Link<WriteSession<C>>>,
    patience: Duration,
}

impl<C: Create> GroupCommit<C> {
    /// Begins to write, on the current runtime.
    pub(crate) fn start(opener: Opener, settings: &PostgresSettings) -> (Self, JoinHandle<()>) {
        let queue = Arc::new(Queue::new(settings.max_waiting_creates));
        let (endpoint, patience) = (opener.endpoint.clone(), settings.timeout);
        let link = Arc::new(Link::new(opener, settings.clone()));
        let writer = Writer { queue: Arc::clone(&queue), link: Arc::clone(&link), endpoint, patience };
        let writing = tokio::spawn(writer.run());
        (Self(Arc::new(Sender { queue, link, patience })), writing)
    }

    /// The connection that it writes on.
    pub(crate) fn link(&self) -> Arc<Link<WriteSession<C>>> {
        Arc::clone(&self.0.link)
    }

    /// Adds an animal: the answer comes after its commit.
    pub(crate) async fn add(&self, create: C) -> Answer {
        let Sender { queue, link, patience } = &*self.0;
        link.session().await.map_err(StorageError::from)?;
        let (place, mut answer) = queue.join(create)?;
        match timeout(*patience, &mut answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(lost())),
            Err(_) if place.leave() => Err(StorageError::Timeout.into()),
            // It was sent: the writer has a deadline of its own.
            Err(_) => answer.await.unwrap_or_else(|_| Err(lost())),
        }
    }
}

impl<C: Create> Clone for GroupCommit<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn lost() -> AddPetError {
    AddPetError::OutcomeUnknown("the writer ended".into())
}

impl<C: Create> Drop for Sender<C> {
    fn drop(&mut self) {
        self.queue.close();
    }
}
