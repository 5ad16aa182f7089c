use animal_store_app::{ports::StoreFailure, status_number};
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{QueryResult, RunQueryDsl, SqliteConnection, prelude::*};
use tokio::sync::oneshot;

use super::query;
use crate::{
    error::read_error,
    pet_row::{PetRow, PetRowWithoutStatus},
};

/// A read, and the channel for its response.
pub(super) enum Read {
    Find {
        id: PetId,
        sender: oneshot::Sender<Result<Option<Pet>, StoreFailure>>,
    },
    List {
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
        sender: oneshot::Sender<Result<Vec<Pet>, StoreFailure>>,
    },
}

impl Read {
    /// Executes the read and sends its response. Returns whether the connection can be used again. A client that has
    /// disconnected gets no response, and the read is not executed.
    pub(super) fn execute(self, connection: &mut SqliteConnection) -> bool {
        match self {
            Self::Find { sender, .. } if sender.is_closed() => true,
            Self::List { sender, .. } if sender.is_closed() => true,
            Self::Find { id, sender } => {
                let row = query::find(id.get()).get_result::<PetRow>(connection).optional();
                respond(sender, row, |row| row.map(Pet::try_from).transpose())
            }
            Self::List { status, after, limit, sender } => {
                let after = after.map_or(0, PetId::get);
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                if let Some(status) = status {
                    let rows = query::list_by_status(status_number(status), after, limit);
                    let rows = rows.load::<PetRowWithoutStatus>(connection);
                    respond(sender, rows, |rows| {
                        rows.into_iter().map(|row| Pet::try_from(row.with_status(status))).collect()
                    })
                } else {
                    let rows = query::list(after, limit).load::<PetRow>(connection);
                    respond(sender, rows, |rows| rows.into_iter().map(Pet::try_from).collect())
                }
            }
        }
    }

    /// Responds that the storage is not available.
    pub(super) fn fail(self, error: StoreFailure) {
        // The client may have disconnected.
        match self {
            Self::Find { sender, .. } => _ = sender.send(Err(error)),
            Self::List { sender, .. } => _ = sender.send(Err(error)),
        }
    }
}

fn respond<R, T>(
    sender: oneshot::Sender<Result<T, StoreFailure>>,
    rows: QueryResult<R>,
    decode: impl FnOnce(R) -> Result<T, StoreFailure>,
) -> bool {
    let is_usable = rows.is_ok();
    let response = rows.map_err(read_error).and_then(decode);
    // The client may have disconnected.
    let _ = sender.send(response);
    is_usable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are no tables, so that each read that is executed fails.
    #[test]
    fn the_read_of_a_client_that_has_disconnected_is_not_executed() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        let id = PetId::parse(1).unwrap();
        let (sender, receiver) = oneshot::channel();
        assert!(!Read::Find { id, sender }.execute(&mut connection));
        drop(receiver);
        let (sender, _) = oneshot::channel();
        assert!(Read::Find { id, sender }.execute(&mut connection));
        let (sender, _) = oneshot::channel();
        assert!(Read::List { status: None, after: None, limit: 1, sender }.execute(&mut connection));
    }
}
