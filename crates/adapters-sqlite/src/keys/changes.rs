//! The rows of the recorded changes.

use std::time::SystemTime;

use animal_store_adapter_kit::{AuditRow, audit_entry, audit_kept_since, audit_row};
use animal_store_app::AuditEntry;
use diesel::{prelude::*, sql_query, sql_types::BigInt};

use crate::{
    error::corrupt,
    tables::api_key_changes::{
        api_key_id, at, change, changed_by, expires_at, id, label, old_token_ends, scopes, table,
    },
};

pub(super) fn read(connection: &mut SqliteConnection) -> QueryResult<Vec<AuditEntry>> {
    let columns = (
        at,
        changed_by,
        change,
        api_key_id,
        label,
        scopes,
        expires_at,
        old_token_ends,
    );
    let rows: Vec<AuditRow> = table.select(columns).order((at, id)).load(connection)?;
    rows.into_iter()
        .map(audit_entry)
        .collect::<Result<_, _>>()
        .map_err(corrupt)
}

/// Adds entries, and deletes those that are no longer kept.
pub(super) fn add(
    connection: &mut SqliteConnection,
    entries: impl IntoIterator<Item = AuditEntry>,
    now: SystemTime,
) -> QueryResult<()> {
    for entry in entries {
        let row = audit_row(entry);
        let key = (api_key_id.eq(row.3), label.eq(row.4), scopes.eq(row.5));
        let ends = (expires_at.eq(row.6), old_token_ends.eq(row.7));
        let values = (
            at.eq(row.0),
            changed_by.eq(row.1),
            change.eq(row.2),
            key,
            ends,
        );
        diesel::insert_into(table)
            .values(values)
            .execute(connection)?;
    }
    let delete = sql_query(
        "DELETE FROM api_key_changes WHERE at < ?
         OR id IN (SELECT id FROM api_key_changes ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?)",
    );
    let delete = delete
        .bind::<BigInt, _>(audit_kept_since(now))
        .bind::<BigInt, _>(i64::from(AuditEntry::LIMIT));
    delete.execute(connection).map(drop)
}
