//! The statements on the rows of the audit log.

use std::time::SystemTime;

use animal_store_adapter_kit::{AuditRow, audit_entries, audit_row, prune_audit_log};
use animal_store_app::{AuditEntry, ports::StoreFailure};
use tokio_postgres::types::Type;

use crate::transaction::{TransactionConnection, corrupt, parse};

pub(super) async fn read(
    connection: &TransactionConnection,
    now: SystemTime,
) -> Result<Vec<AuditEntry>, StoreFailure> {
    let select =
        "SELECT at, changed_by, change, api_key_id, label, scopes, expires_at, old_token_ends
        FROM api_key_changes ORDER BY at, id";
    let entry = |row| {
        let key = (parse(row, 3)?, parse(row, 4)?, parse(row, 5)?);
        Ok::<AuditRow, StoreFailure>((
            parse(row, 0)?,
            parse(row, 1)?,
            parse(row, 2)?,
            key.0,
            key.1,
            key.2,
            parse(row, 6)?,
            parse(row, 7)?,
        ))
    };
    let rows = connection.query(select, &[]).await?;
    let rows = rows.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    audit_entries(rows, now).map_err(corrupt)
}

/// Adds entries, and deletes those that are no longer kept.
pub(super) async fn add(
    connection: &TransactionConnection,
    entries: impl IntoIterator<Item = AuditEntry, IntoIter: Send> + Send,
    now: SystemTime,
) -> Result<(), StoreFailure> {
    let insert = "INSERT INTO api_key_changes
            (at, changed_by, change, api_key_id, label, scopes, expires_at, old_token_ends)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    for entry in entries {
        let (at, by, change, id, label, scopes, expires, old_token_ends) = audit_row(entry);
        let values = [
            (&at as _, Type::INT8),
            (&by as _, Type::TEXT),
            (&change as _, Type::TEXT),
            (&id as _, Type::TEXT),
            (&label as _, Type::TEXT),
            (&scopes as _, Type::TEXT),
            (&expires as _, Type::INT8),
            (&old_token_ends as _, Type::INT8),
        ];
        connection.query(insert, &values).await?;
    }
    connection.run(&prune_audit_log(now)).await
}
