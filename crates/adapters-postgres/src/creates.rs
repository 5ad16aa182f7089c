//! Creates, with and without an idempotency key. Each kind has a connection of its own: one with a key may have to wait
//! for a transaction of another process, and nobody else shall.

mod busy_keys;
mod keyed_create;
mod plain_create;

use std::sync::Arc;

use animal_store_app::ports::{AddPet, AddPetError};
use tokio::{task::JoinHandle, try_join};

use self::{busy_keys::BusyKeys, keyed_create::KeyedCreate, plain_create::PlainCreate};
use crate::{
    PostgresSettings,
    error::NotConnected,
    group_commit::{Answer, GroupCommit, WriteSession},
    link::{Link, Opener},
};

/// Adds animals, for all workers of the process. Its end comes when the last of these is dropped and all creates are
/// answered.
#[derive(Clone)]
pub(crate) struct Creates {
    plain: GroupCommit<PlainCreate>,
    keyed: GroupCommit<KeyedCreate>,
    busy_keys: Arc<BusyKeys>,
}

/// The connections of both kinds. To hold them keeps no writer from its end.
pub(crate) struct CreateLinks {
    plain: Arc<Link<WriteSession<PlainCreate>>>,
    keyed: Arc<Link<WriteSession<KeyedCreate>>>,
}

impl Creates {
    /// Begins to write, on the current runtime. The task ends with both writers, or with the first that dies.
    pub(crate) fn start(opener: &Opener, settings: &PostgresSettings) -> (Self, JoinHandle<()>) {
        let (plain, plain_end) = GroupCommit::start(opener.clone(), settings);
        let (keyed, keyed_end) = GroupCommit::start(opener.clone(), settings);
        let end = tokio::spawn(async move {
            // Whoever waits for this wants to know when, not why.
            let _ = try_join!(plain_end, keyed_end);
        });
        (Self { plain, keyed, busy_keys: Arc::default() }, end)
    }

    /// Adds an animal: the answer comes after its commit.
    pub(crate) async fn add(&self, request: AddPet) -> Answer {
        let Some(key) = request.idempotency_key else {
            return self.plain.add(PlainCreate(request.pet)).await;
        };
        let key = self.busy_keys.take(key).ok_or(AddPetError::IdempotencyConflict)?;
        self.keyed.add(KeyedCreate { pet: request.pet, key }).await
    }

    /// Their connections.
    pub(crate) fn links(&self) -> CreateLinks {
        CreateLinks { plain: self.plain.link(), keyed: self.keyed.link() }
    }
}

impl CreateLinks {
    /// Whether both are there.
    pub(crate) async fn connected(&self) -> Result<(), NotConnected> {
        self.plain.session().await?;
        self.keyed.session().await?;
        Ok(())
    }
}
