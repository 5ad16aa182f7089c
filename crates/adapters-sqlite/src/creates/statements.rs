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

use super::idempotency;
use crate::{
    error::Problem,
    pet_row::{NewPetRow, pets},
    session::begin,
};

#[declare_sql_function]
extern "SQL" {
    /// The id of the last row that this connection inserted, triggers aside. It stands for `RETURNING`, for which SQLite
    /// opens a temporary table for each row: a quarter of the CPU of a create.
    fn last_insert_rowid() -> BigInt;
}

/// Creates that share a transaction.
pub(super) struct Batch<'a> {
    requests: Vec<&'a AddPet>,
    /// The creation time of the pets.
    now: SystemTime,
    /// How long an idempotency key is kept.
    retention: Duration,
    timeout: Duration,
}

/// The outcome of a create, if its transaction is committed.
pub(super) enum AddOutcome {
    Added(PetId),
    /// An earlier request with the idempotency key has added this pet.
    Replayed(PetId),
    /// The idempotency key was used for another pet.
    Mismatch,
    Refused(StoreFailure),
}

impl<'a> Batch<'a> {
    pub(super) fn new(requests: Vec<&'a AddPet>, retention: Duration, timeout: Duration) -> Self {
        Self {
            requests,
            now: SystemTime::now(),
            retention,
            timeout,
        }
    }

    /// Adds the pets. The transaction is open before and after. An error is that of the batch, which is not stored.
    pub(super) fn add_all(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<AddOutcome>, Problem> {
        let add = |request: &&AddPet| self.add(connection, request);
        let added: QueryResult<Vec<_>> = self.requests.iter().map(add).collect();
        match added.map_err(Problem::from) {
            Err(problem) if may_be_of_one_row(&problem) => {
                self.restart(connection)?;
                self.add_in_savepoints(connection)
            }
            added => added,
        }
    }

    /// Adds each pet in a savepoint. A row that ends the transaction also undoes the rows before it: after a pass that
    /// found such rows, the next one adds all others again.
    fn add_in_savepoints(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<AddOutcome>, Problem> {
        let start = Instant::now();
        let mut outcomes: Vec<Option<AddOutcome>> = self.requests.iter().map(|_| None).collect();
        loop {
            let mut is_whole = true;
            for (request, outcome) in self.requests.iter().zip(&mut outcomes) {
                if matches!(outcome, Some(AddOutcome::Refused(_))) {
                    continue;
                }
                connection.batch_execute("SAVEPOINT one_row")?;
                match self.add(connection, request).map_err(Problem::from) {
                    Ok(added) => *outcome = Some(added),
                    Err(problem)
                        if may_be_of_one_row(&problem) && start.elapsed() < self.timeout =>
                    {
                        let failure = problem.failure(problem.to_string());
                        *outcome = Some(AddOutcome::Refused(failure));
                        if connection.batch_execute("ROLLBACK TO one_row").is_err() {
                            self.restart(connection)?;
                            is_whole = false;
                            continue;
                        }
                    }
                    Err(problem) => return Err(problem),
                }
                connection.batch_execute("RELEASE one_row")?;
            }
            if is_whole {
                return Ok(outcomes.into_iter().flatten().collect());
            }
            self.restart(connection)?;
        }
    }

    /// Undoes the transaction, if there still is one, and begins another.
    fn restart(&self, connection: &mut SqliteConnection) -> Result<(), Problem> {
        // It fails if SQLite has ended the transaction.
        let _ = connection.batch_execute("ROLLBACK");
        begin(connection, self.timeout)
    }

    /// Adds a pet, or finds the pet of its idempotency key.
    fn add(&self, connection: &mut SqliteConnection, request: &AddPet) -> QueryResult<AddOutcome> {
        let pet = &request.pet;
        let Some(key) = &request.idempotency_key else {
            return self.insert(connection, pet);
        };
        let pet_digest = PetDigest::from_pet(pet);
        if let Some(earlier) = idempotency::find(connection, key, self.now)? {
            return Ok(if earlier.pet_digest == pet_digest.0 {
                outcome(earlier.pet_id, AddOutcome::Replayed)
            } else {
                AddOutcome::Mismatch
            });
        }
        let outcome = self.insert(connection, pet)?;
        if let AddOutcome::Added(pet_id) = outcome {
            let record = IdempotencyRecord {
                key: key.clone(),
                pet_digest,
                pet_id,
                expires_at: self.now + self.retention,
            };
            idempotency::add(connection, &record)?;
        }
        Ok(outcome)
    }

    fn insert(&self, connection: &mut SqliteConnection, pet: &NewPet) -> QueryResult<AddOutcome> {
        let since_1970 = self
            .now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let created_at = i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX);
        let inserted = diesel::insert_into(pets::table)
            .values(NewPetRow::from_pet(pet, created_at))
            .execute(connection)?;
        if inserted == 0 {
            let cause = "a trigger suppressed the row".into();
            return Ok(AddOutcome::Refused(StoreFailure::Unavailable(cause)));
        }
        let id = diesel::select(last_insert_rowid()).get_result(connection)?;
        Ok(outcome(id, AddOutcome::Added))
    }
}

/// Returns the outcome for the id of a row, which a program other than this one may have chosen.
fn outcome(id: i64, of_pet: fn(PetId) -> AddOutcome) -> AddOutcome {
    match PetId::parse(id) {
        Ok(id) => of_pet(id),
        Err(error) => AddOutcome::Refused(StoreFailure::Corrupt(Cause::of(&error))),
    }
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
