//! The statements on the rows of API keys and of their tokens.

use std::time::SystemTime;

use animal_store_adapter_kit::{KeyRows, KeyWrite, SelectKeys, new_mark};
use animal_store_app::{
    ApiKeyId, IssuedApiKey, from_milliseconds, milliseconds, ports::StoreFailure,
};
use tokio_postgres::{Error, Row, types::Type};

use crate::error::invalid_row;
use crate::transaction::{Parameter, TransactionConnection, corrupt, parse};

/// The statement that selects keys, and its parameter.
pub(super) fn statement<'a>(select: &'a SelectKeys<'_>) -> (String, Parameter<'a>) {
    let (condition, parameter): (_, Parameter<'_>) = match select {
        SelectKeys::ChangedSince(version) => ("version > $1", (version, Type::INT8)),
        SelectKeys::Id(id) => ("id = $1", (id, Type::TEXT)),
        SelectKeys::Digest(digest) => ("digest = $1", (digest, Type::BYTEA)),
    };
    let statement = format!(
        "SELECT id, label, scopes, digest, last_four, created_at, expires_at
        FROM api_keys LEFT JOIN api_key_tokens ON api_key_id = id
        WHERE {condition} ORDER BY id, created_at, digest"
    );
    (statement, parameter)
}

/// Locks the version until the end of the transaction. Returns it with the time of the server, which is read after the
/// changes before this one.
pub(super) async fn lock(
    connection: &TransactionConnection,
) -> Result<(i64, SystemTime), StoreFailure> {
    let lock = "SELECT version FROM api_key_state FOR UPDATE";
    let locked = connection.query(lock, &[]).await?;
    let version = locked
        .first()
        .ok_or_else(|| corrupt("table api_key_state has no row"))?;
    Ok((parse(version, 0)?, now(connection).await?))
}

/// Returns the time of the server.
pub(super) async fn now(connection: &TransactionConnection) -> Result<SystemTime, StoreFailure> {
    let now = connection
        .query_one("SELECT clock_timestamp()", &[])
        .await?;
    parse::<SystemTime>(&now, 0).map(|now| from_milliseconds(milliseconds(now)))
}

/// Reads keys with their tokens, in the order of their ids. Keys without tokens are included.
pub(super) async fn read(
    connection: &TransactionConnection,
    select: SelectKeys<'_>,
) -> Result<Vec<KeyRows>, StoreFailure> {
    let (statement, parameter) = statement(&select);
    keys(&connection.query(&statement, &[parameter]).await?).map_err(invalid_row)
}

/// Collects the rows of [`statement`].
pub(super) fn keys(rows: &[Row]) -> Result<Vec<KeyRows>, Error> {
    let columns = |row: &Row| {
        let digest: Option<Vec<u8>> = row.try_get(3)?;
        let token = |digest| Ok((digest, row.try_get(4)?, row.try_get(5)?, row.try_get(6)?));
        Ok((
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
            digest.map(token).transpose()?,
        ))
    };
    KeyRows::collect(rows.iter().map(columns))
}

/// Writes a key, and the state of the store with this version.
pub(super) async fn write(
    connection: &TransactionConnection,
    id: &ApiKeyId,
    key: &KeyWrite,
    version: i64,
) -> Result<(), StoreFailure> {
    let id: Parameter<'_> = (&id.as_str(), Type::TEXT);
    let delete = "DELETE FROM api_key_tokens
        WHERE api_key_id = $1 AND (expires_at IS NULL OR expires_at > $2)";
    let kept_until = (&key.kept_until as _, Type::INT8);
    connection.query(delete, &[id.clone(), kept_until]).await?;
    let changed: Parameter<'_> = (&version, Type::INT8);
    if let Some(after) = &key.changed.after {
        write_key(connection, id, after, changed).await?;
    } else {
        let update = "UPDATE api_keys SET version = $2 WHERE id = $1";
        connection.query(update, &[id, changed]).await?;
    }
    let mark = new_mark();
    let end = key.end(version, &format!("'\\x{mark}'"));
    connection.run(&end).await
}

async fn write_key(
    connection: &TransactionConnection,
    id: Parameter<'_>,
    IssuedApiKey { key, tokens }: &IssuedApiKey,
    version: Parameter<'_>,
) -> Result<(), StoreFailure> {
    let label = key.label.as_str();
    let scopes = key.scopes.to_string();
    let insert = "INSERT INTO api_keys (id, version, label, scopes) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE
            SET (version, label, scopes) = ROW (excluded.version, excluded.label, excluded.scopes)";
    let values = [
        id.clone(),
        version,
        (&label as _, Type::TEXT),
        (&scopes as _, Type::TEXT),
    ];
    connection.query(insert, &values).await?;
    // They may have expired before, also for another key.
    let digests: Vec<_> = tokens.iter().map(|token| &token.digest.0[..]).collect();
    let delete = "DELETE FROM api_key_tokens WHERE digest = ANY ($1)";
    let digests = (&digests as _, Type::BYTEA_ARRAY);
    connection.query(delete, &[digests]).await?;
    for token in tokens {
        let digest = &token.digest.0[..];
        let created = milliseconds(token.created);
        let expires = token.expires.map(milliseconds);
        let insert =
            "INSERT INTO api_key_tokens (api_key_id, digest, last_four, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5)";
        let values = [
            id.clone(),
            (&digest as _, Type::BYTEA),
            (&token.last_four as _, Type::TEXT),
            (&created as _, Type::INT8),
            (&expires as _, Type::INT8),
        ];
        connection.query(insert, &values).await?;
    }
    Ok(())
}
