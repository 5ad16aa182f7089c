//! The progress of imports.

use animal_store_app::ports::{ImportProgress, ImportSource, ImportStep};
use diesel::prelude::*;

use super::error::{BulkError, Refusal};
use crate::{change::AccessError, schema::tables::imports};

/// Records the progress after a step.
pub(super) fn advance(connection: &mut SqliteConnection, step: ImportStep) -> Result<(), BulkError> {
    if progress(connection, step.source)? != step.from {
        return Err(AccessError::Refused(Refusal::ImportConflict));
    }
    let lines = i64::try_from(step.to.lines).unwrap_or(i64::MAX);
    let progress = (
        imports::source.eq(&step.source.0[..]),
        imports::lines.eq(lines),
        imports::digest.eq(&step.to.digest[..]),
        imports::finished.eq(step.to.finished),
    );
    diesel::replace_into(imports::table).values(progress).execute(connection)?;
    Ok(())
}

pub(super) fn progress(
    connection: &mut SqliteConnection,
    source: ImportSource,
) -> Result<Option<ImportProgress>, BulkError> {
    let row = imports::table.find(&source.0[..]).select((imports::lines, imports::digest, imports::finished));
    let Some((lines, digest, finished)) = row.first::<(i64, Vec<u8>, bool)>(connection).optional()? else {
        return Ok(None);
    };
    let corrupt = |column| AccessError::Corrupt(format!("table imports, column {column}: not valid"));
    Ok(Some(ImportProgress {
        lines: lines.try_into().map_err(|_| corrupt("lines"))?,
        digest: digest.try_into().map_err(|_| corrupt("digest"))?,
        finished,
    }))
}

pub(super) fn finish(connection: &mut SqliteConnection, source: ImportSource) -> Result<(), BulkError> {
    diesel::update(imports::table.find(&source.0[..])).set(imports::finished.eq(true)).execute(connection)?;
    Ok(())
}
