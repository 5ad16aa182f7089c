use std::time::SystemTime;

use animal_store_app::{ApiKey, ApiKeyId, AuditEntry, from_milliseconds, milliseconds};

use crate::ClockReadings;

/// An [`AuditEntry`] as it is stored: its time, who, what, the id, label and scopes of the key, when the new token
/// expires, and when the old ones end. Times are in milliseconds since 1970.
pub type AuditRow = (
    i64,
    String,
    String,
    String,
    String,
    String,
    Option<i64>,
    Option<i64>,
);

/// Returns the row of an entry.
pub fn audit_row(entry: AuditEntry) -> AuditRow {
    let AuditEntry {
        at,
        by,
        change,
        key: ApiKey { id, label, scopes },
        expires,
        old_token_ends,
    } = entry;
    let id = id.as_str().to_owned();
    let label = label.as_str().to_owned();
    let [expires, old_token_ends] = [expires, old_token_ends].map(|time| time.map(milliseconds));
    (
        milliseconds(at),
        by,
        change,
        id,
        label,
        scopes.to_string(),
        expires,
        old_token_ends,
    )
}

/// Returns the entry of a row. It is safe to print.
///
/// # Errors
/// The reason why the row is not valid.
pub fn audit_entry(row: AuditRow) -> Result<AuditEntry, String> {
    let (at, by, change, id, label, scopes, expires, old_token_ends) = row;
    let key = ApiKey::from_stored(&id, &label, &scopes)
        .map_err(|problem| format!("recorded change: {problem}"))?;
    let [by, change] = [by, change].map(|text| text.replace(char::is_control, "?"));
    let [expires, old_token_ends] =
        [expires, old_token_ends].map(|time| time.map(from_milliseconds));
    Ok(AuditEntry {
        at: from_milliseconds(at),
        by,
        change,
        key,
        expires,
        old_token_ends,
    })
}

/// Returns the entries of rows that are kept at this time. The others only look old, if the clock is wrong.
///
/// # Errors
/// The reason why the first invalid row is not valid.
pub fn audit_entries(
    rows: impl IntoIterator<Item = AuditRow>,
    now: SystemTime,
) -> Result<Vec<AuditEntry>, String> {
    let kept_since = audit_kept_since(now);
    rows.into_iter()
        .filter(|row| row.0 >= kept_since)
        .map(audit_entry)
        .collect()
}

/// Returns the time in milliseconds before which entries are no longer kept.
pub fn audit_kept_since(now: SystemTime) -> i64 {
    milliseconds(now - AuditEntry::KEPT)
}

/// Returns the statement of SQLite and of PostgreSQL that deletes the rows that are no longer kept.
pub fn prune_audit_log(now: SystemTime) -> String {
    let proof = ClockReadings::of_keys(now).proof();
    let kept = AuditEntry::KEPT.as_millis();
    let limit = AuditEntry::LIMIT;
    let all = i64::MAX;
    format!(
        "DELETE FROM api_key_changes WHERE at < {proof} - {kept} OR id IN
         (SELECT id FROM api_key_changes ORDER BY at DESC, id DESC LIMIT {all} OFFSET {limit})"
    )
}

/// Logs that a store has applied a revocation, and cannot record it.
pub fn log_unrecorded_revocation(api_key: &ApiKeyId, by: &str, reason: &str) {
    tracing::error!(
        target: AuditEntry::LOG_TARGET, %api_key, by, reason, "the revocation is not recorded"
    );
}
