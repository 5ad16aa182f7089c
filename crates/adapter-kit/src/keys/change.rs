//! A change of a key: what it reads, and what it writes.

use std::{slice, time::SystemTime};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, AuditEntry, IssuedApiKey, milliseconds,
    ports::{ChangedApiKey, StoreFailure, StoreResult},
};

use super::{
    audit::append_audit,
    reads::{issued_keys, key_row, state_row},
    sql::{Sql, Value},
    statements,
};
use crate::{
    ClockReadings,
    directory::{KeyCounts, MARKS_KEPT, new_mark},
};

/// What became of a change.
pub(super) enum Outcome {
    Changed(ChangedApiKey),
    /// Nothing was changed.
    Refused(ApiKeyRefusal),
}

/// Applies a change, by the rules of [`ApiKeyChange::apply`], and records it, unless it is a revocation.
pub(super) fn apply(sql: &mut dyn Sql, change: &ApiKeyChange, by: &str) -> StoreResult<Outcome> {
    let version = lock_version(sql)? + 1;
    // Read under the lock, so that the times of changes are in their order.
    let now = sql.now()?;
    let before = find_before(sql, change, now)?;
    let owner = find_owner(sql, change, now)?;
    let after = match change.apply(before.as_ref(), owner.as_ref(), now) {
        Ok(after) => after,
        Err(refusal) => return Ok(Outcome::Refused(refusal)),
    };
    let changed = ChangedApiKey {
        before,
        after,
        at: now,
    };
    let growth = write_key(sql, change, &changed, version)?;
    write_state(sql, version, growth, now)?;
    if !matches!(change, ApiKeyChange::Revoke(_)) {
        append_audit(sql, AuditEntry::of(change, &changed, by), now)?;
    }
    Ok(Outcome::Changed(changed))
}

/// Returns the version of the last change. No other change is made until the end of the transaction.
pub(super) fn lock_version(sql: &mut dyn Sql) -> StoreResult<i64> {
    let statement = format!("{} {}", statements::SELECT_VERSION, sql.row_lock());
    state_row(sql, &statement)?.integer()
}

fn find_before(
    sql: &mut dyn Sql,
    change: &ApiKeyChange,
    now: SystemTime,
) -> StoreResult<Option<IssuedApiKey>> {
    let id = change.id();
    let values = [milliseconds(now).into(), id.as_str().into()];
    let rows = sql.rows(statements::SELECT_BY_ID, &values)?;
    let keys = issued_keys(rows);
    if let ApiKeyChange::Revoke(id) = change
        && let Err(StoreFailure::Corrupt(_)) = keys
    {
        // So that an invalid key can be revoked.
        return Ok(Some(IssuedApiKey::unreadable(id.clone())));
    }
    Ok(keys?.pop())
}

/// Returns another key that has a token of the change.
fn find_owner(
    sql: &mut dyn Sql,
    change: &ApiKeyChange,
    now: SystemTime,
) -> StoreResult<Option<ApiKey>> {
    for digest in change.digests() {
        let values = [milliseconds(now).into(), digest.0.as_slice().into()];
        for mut row in sql.rows(statements::SELECT_OWNER, &values)? {
            let owner = key_row(&mut row)?;
            if owner.id != change.id().as_str() {
                return owner.key().map(Some);
            }
        }
    }
    Ok(None)
}

/// Writes the key after a change. Returns by how much the numbers of keys and tokens grow.
fn write_key(
    sql: &mut dyn Sql,
    change: &ApiKeyChange,
    changed: &ChangedApiKey,
    version: i64,
) -> StoreResult<KeyCounts> {
    let id: Value = change.id().as_str().into();
    // Only a revocation deletes tokens that look expired: if the clock is wrong, they are still valid.
    let kept_until = match change {
        ApiKeyChange::Revoke(_) => i64::MIN,
        _ => milliseconds(changed.at),
    };
    let mut growth = KeyCounts::default();
    let deleted = [id.clone(), kept_until.into()];
    growth.tokens -= count(sql, statements::DELETE_TOKENS, &deleted)?;
    let Some(IssuedApiKey { key, tokens }) = &changed.after else {
        sql.rows(statements::TOUCH_KEY, &[id, version.into()])?;
        return Ok(growth);
    };
    let values = [
        id.clone(),
        version.into(),
        key.label.as_str().into(),
        key.scopes.to_string().as_str().into(),
    ];
    if count(sql, statements::UPDATE_KEY, &values)? == 0 {
        sql.rows(statements::INSERT_KEY, &values)?;
        growth.keys += 1;
    }
    for token in tokens {
        let digest: Value = token.digest.0.as_slice().into();
        // It may have expired before, also for another key.
        growth.tokens -= count(sql, statements::DELETE_TOKEN, slice::from_ref(&digest))?;
        let values = [
            id.clone(),
            digest,
            token.last_four.as_str().into(),
            milliseconds(token.created).into(),
            token.expires.map(milliseconds).into(),
        ];
        sql.rows(statements::INSERT_TOKEN, &values)?;
        growth.tokens += 1;
    }
    Ok(growth)
}

/// Deletes the tokens that expired long ago, and writes the state after a change.
fn write_state(
    sql: &mut dyn Sql,
    version: i64,
    mut growth: KeyCounts,
    now: SystemTime,
) -> StoreResult<()> {
    let readings = ClockReadings::of_keys(now);
    for statement in readings.record() {
        sql.rows(&statement, &[])?;
    }
    if let Some(proof) = readings.read_proof(sql)? {
        growth.tokens -= count(sql, statements::DELETE_EXPIRED, &[proof.into()])?;
    }
    let mark: Value = new_mark().as_slice().into();
    let state = [
        version.into(),
        mark.clone(),
        growth.keys.into(),
        growth.tokens.into(),
    ];
    sql.rows(statements::WRITE_STATE, &state)?;
    sql.rows(statements::WRITE_MARK, &[version.into(), mark])?;
    let oldest = version - MARKS_KEPT;
    sql.rows(statements::DELETE_MARKS, &[version.into(), oldest.into()])?;
    Ok(())
}

/// Runs a statement, and returns the number of its rows.
fn count(sql: &mut dyn Sql, statement: &str, values: &[Value]) -> StoreResult<i64> {
    let rows = sql.rows(statement, values)?;
    Ok(i64::try_from(rows.len()).unwrap_or(i64::MAX))
}
