//! The statements of a batch of creates, in a transaction of the caller's.
//!
//! **Problem.** A trigger of the operator refuses a row. `RAISE(ABORT)` undoes its statement, `RAISE(FAIL)` keeps a
//! part of it, and `RAISE(ROLLBACK)` ends the transaction, with the rows of other clients.
//!
//! **Invariant.** A row that fails fails alone, leaves nothing, and costs no commit of its own.
//!
//! **Proof.** `tests/sqlite/refused_rows.rs`; the unit test.

use std::time::{Duration, Instant, SystemTime};

use animal_store_app::{
    PetDigest,
    ports::{AddPet, Cause, IdempotencyRecord, StoreFailure},
};
use animal_store_domain::{NewPet, PetId};
use diesel::{connection::SimpleConnection, prelude::*};

use crate::{
    error::Problem,
    idempotency,
    pet_row::{NewPetRow, pets},
    session::begin,
};

/// The id of a pet, and whether an earlier request added it.
pub(crate) type Added = (PetId, bool);

/// `None`: the idempotency key was used for another pet.
type AddResult = Result<Option<Added>, StoreFailure>;

/// Adds pets. The transaction is open before and after. The outer error is that of the batch, which is not stored.
pub(crate) fn add_all(
    connection: &mut SqliteConnection,
    requests: &[&AddPet],
    retention: Duration,
    timeout: Duration,
) -> Result<Vec<AddResult>, Problem> {
    let now = SystemTime::now();
    let added: QueryResult<_> = requests
        .iter()
        .map(|request| add(connection, request, now, retention))
        .collect();
    let added = added.map_err(Problem::from);
    if !added.as_ref().is_err_and(may_be_of_one_row) {
        return added;
    }
    restart(connection, timeout)?;
    add_in_savepoints(connection, requests, now, retention, timeout)
}

/// Adds each pet in a savepoint. A row that ends the transaction also undoes the rows before it: after a pass that
/// found such rows, the next one adds all others again.
fn add_in_savepoints(
    connection: &mut SqliteConnection,
    requests: &[&AddPet],
    now: SystemTime,
    retention: Duration,
    timeout: Duration,
) -> Result<Vec<AddResult>, Problem> {
    let start = Instant::now();
    let mut results: Vec<AddResult> = requests.iter().map(|_| Ok(None)).collect();
    loop {
        let mut is_whole = true;
        for (request, result) in requests.iter().zip(&mut results) {
            if result.is_err() {
                continue;
            }
            connection.batch_execute("SAVEPOINT one_row")?;
            match add(connection, request, now, retention).map_err(Problem::from) {
                Ok(added) => *result = added,
                Err(problem) if may_be_of_one_row(&problem) && start.elapsed() < timeout => {
                    *result = Err(problem.failure(problem.to_string()));
                    if connection.batch_execute("ROLLBACK TO one_row").is_err() {
                        restart(connection, timeout)?;
                        is_whole = false;
                        continue;
                    }
                }
                Err(problem) => return Err(problem),
            }
            connection.batch_execute("RELEASE one_row")?;
        }
        if is_whole {
            return Ok(results);
        }
        restart(connection, timeout)?;
    }
}

/// Undoes the transaction, if there still is one, and begins another.
fn restart(connection: &mut SqliteConnection, timeout: Duration) -> Result<(), Problem> {
    // It fails if SQLite has ended the transaction.
    let _ = connection.batch_execute("ROLLBACK");
    begin(connection, timeout)
}

/// Whether one row may have failed the others. Otherwise, each of them would fail.
fn may_be_of_one_row(problem: &Problem) -> bool {
    match problem {
        Problem::Unavailable(reason) => {
            !["disk I/O error", "out of memory"].contains(&reason.as_str())
        }
        Problem::Duplicate | Problem::Corrupt(_) | Problem::InvalidRow(_) => true,
        _ => false,
    }
}

/// Adds a pet, or finds the pet of its idempotency key, which is kept for `retention`.
fn add(
    connection: &mut SqliteConnection,
    request: &AddPet,
    now: SystemTime,
    retention: Duration,
) -> QueryResult<AddResult> {
    let AddPet {
        pet,
        idempotency_key,
    } = request;
    let Some(key) = idempotency_key else {
        return Ok(insert(connection, pet, now)?.map(|id| Some((id, false))));
    };
    let pet_digest = PetDigest::from_pet(pet);
    Ok(match idempotency::find(connection, key, now)? {
        Some((recorded, id)) if recorded == pet_digest.0 => parse(id).map(|id| Some((id, true))),
        Some(_) => Ok(None),
        None => {
            let inserted = insert(connection, pet, now)?;
            if let Ok(pet_id) = inserted {
                let record = IdempotencyRecord {
                    key: key.clone(),
                    pet_digest,
                    pet_id,
                    expires_at: now + retention,
                };
                idempotency::add(connection, &record, now)?;
            }
            inserted.map(|id| Some((id, false)))
        }
    })
}

fn insert(
    connection: &mut SqliteConnection,
    pet: &NewPet,
    now: SystemTime,
) -> QueryResult<Result<PetId, StoreFailure>> {
    let since_1970 = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let row = NewPetRow::from_pet(
        pet,
        i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX),
    );
    let inserted = diesel::insert_into(pets::table)
        .values(row)
        .returning(pets::id)
        .get_result(connection)
        .optional()?;
    let suppressed = || StoreFailure::Unavailable("a trigger suppressed the row".into());
    Ok(inserted.ok_or_else(suppressed).and_then(parse))
}

fn parse(id: i64) -> Result<PetId, StoreFailure> {
    PetId::parse(id).map_err(|error| StoreFailure::Corrupt(Cause::of(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_every_row_would_have_is_not_of_one_row() {
        for (message, is_of_one_row) in [
            ("no", true),
            ("integer overflow", true),
            ("UNIQUE constraint failed: other.id", true),
            ("too many levels of trigger recursion", true),
            ("database disk image is malformed", true),
            ("database is locked", false),
            ("database or disk is full", false),
            ("attempt to write a readonly database", false),
            ("disk I/O error", false),
            ("out of memory", false),
        ] {
            let problem = Problem::of_message(&message);
            assert_eq!(may_be_of_one_row(&problem), is_of_one_row, "{message}");
        }
    }
}
