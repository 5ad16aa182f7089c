//! The rows of the audit log.

use std::time::SystemTime;

use animal_store_adapter_kit::{AuditRow, audit_entries, audit_row, prune_audit_log};
use animal_store_app::AuditEntry;
use diesel::{connection::SimpleConnection, prelude::*};

use crate::{
    error::corrupt,
    tables::api_key_changes::{
        api_key_id, at, change, changed_by, expires_at, id, label, old_token_ends, scopes, table,
    },
};

pub(super) fn read(
    connection: &mut SqliteConnection,
    now: SystemTime,
) -> QueryResult<Vec<AuditEntry>> {
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
    audit_entries(rows, now).map_err(corrupt)
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
    connection.batch_execute(&prune_audit_log(now))
}
