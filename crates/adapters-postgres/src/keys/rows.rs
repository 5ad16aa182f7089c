//! The rows of API keys and of their tokens.

use std::time::SystemTime;

use animal_store_adapter_kit::{KeyRow, TokenRow};
use animal_store_app::{
    ApiKeyId, IssuedApiKey, milliseconds,
    ports::{ChangedApiKey, StoreFailure},
};
use tokio_postgres::{Row, types::Type};

use super::column;
use crate::bulk::BulkConnection;

/// Returns a query for the keys of a condition, with the tokens that are valid at the time `$1`, or now if that is NULL.
/// The subquery is an index scan for each key, whatever the number of keys.
pub(super) fn select(condition: &str) -> String {
    let order = "ORDER BY created_at, digest";
    format!(
        "SELECT id, label, scopes, version, digests, last_fours, creations, expiries FROM api_keys
        CROSS JOIN LATERAL (
            SELECT array_agg(digest {order}) AS digests, array_agg(last_four {order}) AS last_fours,
                array_agg(created_at {order}) AS creations, array_agg(expires_at {order}) AS expiries
            FROM api_key_tokens
            WHERE api_key_id = id AND (expires_at IS NULL OR expires_at > coalesce($1, now()))
        ) AS tokens
        WHERE {condition}"
    )
}

pub(super) fn decode(rows: &[Row]) -> Result<Vec<KeyRow>, StoreFailure> {
    rows.iter().map(|row| column(key_row(row))).collect()
}

pub(super) fn key_row(row: &Row) -> Result<KeyRow, tokio_postgres::Error> {
    let digests: Option<Vec<Vec<u8>>> = row.try_get("digests")?;
    let last_fours: Option<Vec<String>> = row.try_get("last_fours")?;
    let creations: Option<Vec<SystemTime>> = row.try_get("creations")?;
    let expiries: Option<Vec<Option<SystemTime>>> = row.try_get("expiries")?;
    let columns = digests.unwrap_or_default().into_iter().zip(last_fours.unwrap_or_default());
    let times = creations.unwrap_or_default().into_iter().zip(expiries.unwrap_or_default());
    let token = |((digest, last_four), (created, expires)): (_, (_, Option<_>))| TokenRow {
        digest,
        last_four,
        created_at: milliseconds(created),
        expires_at: expires.map(milliseconds),
    };
    Ok(KeyRow {
        id: row.try_get("id")?,
        label: row.try_get("label")?,
        scopes: row.try_get("scopes")?,
        tokens: columns.zip(times).map(token).collect(),
    })
}

/// Writes a changed key with its tokens in place of what the database has of it.
pub(super) async fn write(
    connection: &BulkConnection,
    id: &ApiKeyId,
    changed: &ChangedApiKey,
    version: i64,
) -> Result<(), StoreFailure> {
    let (id, now) = (id.as_str(), changed.at);
    // A token of the change may have been that of another key.
    let expired = "DELETE FROM api_key_tokens WHERE expires_at <= $1";
    connection.query(expired, &[(&now, Type::TIMESTAMPTZ)]).await?;
    connection.query("DELETE FROM api_key_tokens WHERE api_key_id = $1", &[(&id, Type::TEXT)]).await?;
    if changed.before.is_none() || changed.after.is_none() {
        connection.query("DELETE FROM api_key_uses WHERE api_key_id = $1", &[(&id, Type::TEXT)]).await?;
    }
    let Some(IssuedApiKey { key, tokens }) = &changed.after else {
        let row = "UPDATE api_keys SET version = $2 WHERE id = $1";
        return connection.query(row, &[(&id, Type::TEXT), (&version, Type::INT8)]).await.map(drop);
    };
    let row = "INSERT INTO api_keys (id, label, scopes, version) VALUES ($1, $2, $3, $4) ON CONFLICT (id)
        DO UPDATE SET label = excluded.label, scopes = excluded.scopes, version = excluded.version";
    let (label, scopes) = (key.label.as_str(), key.scopes.to_string());
    let columns =
        [(&id as _, Type::TEXT), (&label as _, Type::TEXT), (&scopes as _, Type::TEXT), (&version as _, Type::INT8)];
    connection.query(row, &columns).await?;
    let rows = "INSERT INTO api_key_tokens (digest, api_key_id, last_four, created_at, expires_at)
        SELECT digest, $1, last_four, created_at, expires_at
        FROM unnest($2, $3, $4, $5) AS given (digest, last_four, created_at, expires_at)";
    let digests: Vec<&[u8]> = tokens.iter().map(|token| &token.digest.0[..]).collect();
    let last_fours: Vec<&str> = tokens.iter().map(|token| &*token.last_four).collect();
    let creations: Vec<SystemTime> = tokens.iter().map(|token| token.created).collect();
    let expiries: Vec<Option<SystemTime>> = tokens.iter().map(|token| token.expires).collect();
    let columns = [
        (&id as _, Type::TEXT),
        (&digests as _, Type::BYTEA_ARRAY),
        (&last_fours as _, Type::TEXT_ARRAY),
        (&creations as _, Type::TIMESTAMPTZ_ARRAY),
        (&expiries as _, Type::TIMESTAMPTZ_ARRAY),
    ];
    connection.query(rows, &columns).await.map(drop)
}
