//! The audit log: the recorded changes of keys.

use std::time::SystemTime;

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, AuditEntry, from_milliseconds, milliseconds,
    ports::{StoreFailure, StoreResult},
};

use super::{
    reads::key_row,
    sql::{Row, Sql},
    statements,
};
use crate::ClockReadings;

/// Returns the entries that are kept at this time. Older ones are not deleted here: the clock may be wrong.
pub(super) fn audit_log(sql: &mut dyn Sql) -> StoreResult<Vec<AuditEntry>> {
    let kept_since = audit_kept_since(sql.now()?);
    let rows = sql.rows(statements::SELECT_AUDIT_LOG, &[kept_since.into()])?;
    rows.into_iter().map(entry).collect()
}

fn entry(mut row: Row) -> StoreResult<AuditEntry> {
    let at = row.integer()?;
    let by = row.text()?;
    let change = row.text()?;
    let key = key_row(&mut row)?.key()?;
    let expires = row.optional_integer()?;
    let old_token_ends = row.optional_integer()?;
    let entry = AuditEntry {
        at: from_milliseconds(at),
        by,
        change,
        key,
        expires: expires.map(from_milliseconds),
        old_token_ends: old_token_ends.map(from_milliseconds),
    };
    Ok(entry.printable())
}

/// Appends entries, and deletes those that are no longer kept.
pub(super) fn append_audit(
    sql: &mut dyn Sql,
    entries: impl IntoIterator<Item = AuditEntry>,
    now: SystemTime,
) -> StoreResult<()> {
    for entry in entries {
        let ApiKey { id, label, scopes } = entry.key;
        let values = [
            milliseconds(entry.at).into(),
            entry.by.as_str().into(),
            entry.change.as_str().into(),
            id.as_str().into(),
            label.as_str().into(),
            scopes.to_string().as_str().into(),
            entry.expires.map(milliseconds).into(),
            entry.old_token_ends.map(milliseconds).into(),
        ];
        sql.rows(statements::APPEND_AUDIT, &values)?;
    }
    let proof = ClockReadings::of_keys(now).read_proof(sql)?;
    let oldest = proof.map(|proof| audit_kept_since(from_milliseconds(proof)));
    let values = [oldest.into(), i64::from(AuditEntry::LIMIT).into()];
    sql.rows(statements::PRUNE_AUDIT_LOG, &values)?;
    Ok(())
}

/// Returns the time in milliseconds before which entries are no longer kept.
pub fn audit_kept_since(now: SystemTime) -> i64 {
    milliseconds(now - AuditEntry::KEPT)
}

/// Logs a revocation whose outcome is unknown. If it was applied, its repetition finds no key, and is not recorded.
pub fn log_unknown_revocation<T>(change: &ApiKeyChange, outcome: &StoreResult<T>, by: &str) {
    if let ApiKeyChange::Revoke(id) = change
        && let Err(StoreFailure::OutcomeUnknown(cause)) = outcome
    {
        log_unrecorded_revocation(id, by, &cause.to_string());
    }
}

/// Logs that a store has applied a revocation, and cannot record it.
pub fn log_unrecorded_revocation(api_key: &ApiKeyId, by: &str, reason: &str) {
    tracing::error!(
        target: AuditEntry::LOG_TARGET, %api_key, by, reason, "the revocation is not recorded"
    );
}
