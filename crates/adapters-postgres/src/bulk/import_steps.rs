//! The progress of imports, in the table `imports`.

use animal_store_app::ports::{BulkStorageError, ImportProgress, ImportSource, ImportStep};
use tokio_postgres::{Row, types::Type};

use super::bulk_connection::BulkConnection;

const NEEDED: &str = "SELECT, INSERT and UPDATE on imports";

/// Records the progress, in the transaction of its batch. Another process that records a step of the same file waits
/// for the end of this transaction, and then finds another progress.
pub(super) async fn record(connection: &BulkConnection, step: &ImportStep) -> Result<(), BulkStorageError> {
    let source = (&step.source.0.as_slice() as _, Type::BYTEA);
    let (lines, digest) = parameters(&step.to);
    let to = [source, (&lines as _, Type::INT8), (&digest as _, Type::BYTEA), (&step.to.finished as _, Type::BOOL)];
    let recorded = match &step.from {
        None => {
            let insert = "INSERT INTO imports (source, lines, digest, finished) VALUES ($1, $2, $3, $4)
                ON CONFLICT (source) DO NOTHING RETURNING lines";
            connection.query(insert, &to, NEEDED).await?
        }
        Some(from) => {
            let (lines, digest) = parameters(from);
            let from = [(&lines as _, Type::INT8), (&digest as _, Type::BYTEA), (&from.finished as _, Type::BOOL)];
            let update = "UPDATE imports SET lines = $2, digest = $3, finished = $4
                WHERE source = $1 AND lines = $5 AND digest = $6 AND finished = $7 RETURNING lines";
            connection.query(update, &[to.as_slice(), &from].concat(), NEEDED).await?
        }
    };
    if recorded.is_empty() { Err(BulkStorageError::ImportConflict) } else { Ok(()) }
}

pub(super) async fn progress(
    connection: &BulkConnection,
    source: ImportSource,
) -> Result<Option<ImportProgress>, BulkStorageError> {
    let select = "SELECT lines, digest, finished FROM imports WHERE source = $1";
    let rows = connection.query(select, &[(&source.0.as_slice(), Type::BYTEA)], NEEDED).await?;
    let invalid = || BulkStorageError::Corrupt("table imports: the progress of the file is not valid".into());
    rows.first().map(|row| parse(row).ok_or_else(invalid)).transpose()
}

pub(super) async fn finish(connection: &BulkConnection, source: ImportSource) -> Result<(), BulkStorageError> {
    connection.begin().await?;
    let update = "UPDATE imports SET finished = true WHERE source = $1";
    connection.query(update, &[(&source.0.as_slice(), Type::BYTEA)], NEEDED).await?;
    connection.commit().await
}

fn parameters(progress: &ImportProgress) -> (i64, &[u8]) {
    (i64::try_from(progress.lines).unwrap_or(i64::MAX), &progress.digest)
}

fn parse(row: &Row) -> Option<ImportProgress> {
    let lines: i64 = row.try_get(0).ok()?;
    let digest: &[u8] = row.try_get(1).ok()?;
    let finished = row.try_get(2).ok()?;
    Some(ImportProgress { lines: lines.try_into().ok()?, digest: digest.try_into().ok()?, finished })
}
