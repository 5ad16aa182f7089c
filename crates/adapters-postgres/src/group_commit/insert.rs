//! One statement that adds any number of animals, and what its failure means.

use std::time::Duration;

use animal_store_domain::{NewPet, PetId};
use tokio::time::timeout;
use tokio_postgres::{
    CancelToken, Client, Row, Statement,
    error::{Severity, SqlState},
    types::{ToSql, Type},
};

use crate::{
    PgSettings,
    error::{ConnectionError, describe},
    link::{LATE, Session},
    pet_row::code,
};

/// Which id a row was given is told by its position: the order of RETURNING is not promised. Ids ascend with the
/// positions. What a trigger kept from being stored is left out; what it gave another id has no position.
const INSERT: &str = "\
    WITH given AS MATERIALIZED (
        SELECT nextval('pets_id_seq') AS id, name, category_id, status, ordinal
        FROM unnest($1::text[], $2::bigint[], $3::smallint[]) WITH ORDINALITY
            AS given (name, category_id, status, ordinal)
    ), stored AS (
        INSERT INTO pets (id, name, category_id, status)
        SELECT id, name, category_id, status FROM given
        RETURNING id
    )
    SELECT ordinal, id FROM stored LEFT JOIN given USING (id)";

const TYPES: [Type; 3] = [Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY];

/// A connection that writes. Diesel does not tell SQLSTATEs apart, and what became of a commit is read from them: this
/// one is the driver's own, without Diesel.
pub(crate) struct WriteSession {
    client: Client,
    way: Way,
}

enum Way {
    /// The statement is its own transaction.
    Prepared(Statement),
    /// For a pooler: nothing is left on the server's connection.
    InTransaction { begin: String },
}

/// Why a batch was not added.
pub(super) enum Failure {
    /// Nothing was sent.
    NotSent(String),
    /// PostgreSQL says that it did nothing, and why.
    Refused(SqlState, String),
    /// It may have been added.
    Unknown(String),
}

impl Session for WriteSession {
    const PURPOSE: &'static str = "creates";

    type Settings = PgSettings;

    async fn begin(client: Client, settings: &PgSettings) -> Result<Self, ConnectionError> {
        let way = if settings.transaction_pooling {
            Way::InTransaction { begin: format!("BEGIN; {}", settings.statements("SET LOCAL")) }
        } else {
            Way::Prepared(client.prepare_typed(INSERT, &TYPES).await?)
        };
        warn_of_promises_not_kept(&client).await?;
        Ok(Self { client, way })
    }
}

/// With these off, PostgreSQL says that it has stored what a power failure undoes.
async fn warn_of_promises_not_kept(client: &Client) -> Result<(), ConnectionError> {
    for setting in ["fsync", "synchronous_commit"] {
        let row = client.query_typed_one("SELECT current_setting($1)", &[(&setting, Type::TEXT)]).await?;
        if row.try_get::<_, &str>(0)? == "off" {
            tracing::warn!(setting, "PostgreSQL has this off: animals that were answered 201 can be lost");
        }
    }
    Ok(())
}

impl WriteSession {
    /// Adds these animals in one commit and returns their ids. Only a trigger of somebody else's can leave one out. Each
    /// answer of the server may take so long.
    pub(super) async fn insert(&self, pets: &[&NewPet], patience: Duration) -> Result<Vec<Option<PetId>>, Failure> {
        if self.client.is_closed() {
            return Err(Failure::NotSent("the connection was closed".to_owned()));
        }
        if let Way::InTransaction { begin } = &self.way {
            let begun = timeout(patience, self.client.batch_execute(begin)).await;
            let begun = begun.map_err(|_| Failure::NotSent(LATE.to_owned()))?;
            begun.map_err(|error| Failure::NotSent(describe(&error)))?;
        }
        let rows = timeout(patience, self.insert_and_commit(pets)).await;
        let rows = rows.map_err(|_| Failure::Unknown(LATE.to_owned()))??;
        ids(&rows, pets.len()).ok_or_else(|| Failure::Unknown("it returned what are no ids".to_owned()))
    }

    /// The rows may come before the commit, but the last word after them does not.
    async fn insert_and_commit(&self, pets: &[&NewPet]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let names: Vec<&str> = pets.iter().map(|pet| pet.name().as_str()).collect();
        let categories: Vec<i64> = pets.iter().map(|pet| pet.category_id().get()).collect();
        let statuses: Vec<Option<i16>> = pets.iter().map(|pet| pet.status().map(code)).collect();
        let parameters: [&(dyn ToSql + Sync); 3] = [&names, &categories, &statuses];
        match &self.way {
            Way::Prepared(statement) => self.client.query(statement, &parameters).await,
            Way::InTransaction { .. } => {
                let typed: Vec<_> = parameters.into_iter().zip(TYPES).collect();
                let inserted = self.client.query_typed(INSERT, &typed).await;
                let end = if inserted.is_ok() { "COMMIT" } else { "ROLLBACK" };
                let ended = self.client.batch_execute(end).await;
                let rows = inserted?;
                ended.map(|()| rows)
            }
        }
    }

    /// By which whatever the server is still doing can be ended.
    pub(super) fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }
}

fn ids(rows: &[Row], count: usize) -> Option<Vec<Option<PetId>>> {
    let mut ids = vec![None; count];
    for row in rows {
        let (ordinal, id): (i64, i64) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
        *ids.get_mut(usize::try_from(ordinal - 1).ok()?)? = Some(PetId::new(id).ok()?);
    }
    Some(ids)
}

impl From<tokio_postgres::Error> for Failure {
    /// An ERROR has rolled back whatever it was about. Anything else, a FATAL "terminating connection" among them, may
    /// come after the commit.
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if db.parsed_severity() == Some(Severity::Error) && !is_about_the_connection(db.code()) => {
                Self::Refused(db.code().clone(), describe(&error))
            }
            _ => Self::Unknown(describe(&error)),
        }
    }
}

/// Class 08, and "statement completion unknown".
fn is_about_the_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}
