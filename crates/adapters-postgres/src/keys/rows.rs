//! The statements on the rows of API keys and of their tokens.

use std::{slice, time::SystemTime};

use animal_store_adapter_kit::{KeyRows, SelectKeys};
use animal_store_app::{
    ApiKeyId, IssuedApiKey, from_milliseconds, milliseconds, ports::StoreFailure,
};
use tokio_postgres::{
    Error, Row,
    types::{FromSql, Type},
};

use crate::transaction::{Parameter, TransactionConnection};

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

pub(super) fn corrupt(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreFailure {
    StoreFailure::Corrupt(reason.into())
}

pub(super) fn parse<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreFailure> {
    row.try_get(column).map_err(corrupt)
}

/// Locks the version until the end of the transaction. Returns it with the time of the server, which is read after the
/// changes before this one.
pub(super) async fn lock(
    connection: &TransactionConnection,
) -> Result<(i64, SystemTime), StoreFailure> {
    let locked = connection
        .query("SELECT version FROM api_key_state FOR UPDATE", &[])
        .await?;
    let version = locked
        .first()
        .ok_or_else(|| corrupt("table api_key_state has no row"))?;
    Ok((parse(version, 0)?, now(connection).await?))
}

/// Returns the time of the server.
pub(super) async fn now(connection: &TransactionConnection) -> Result<SystemTime, StoreFailure> {
    let rows = connection.query("SELECT clock_timestamp()", &[]).await?;
    let now = rows
        .first()
        .ok_or_else(|| corrupt("the server returned no time"))?;
    parse::<SystemTime>(now, 0).map(|now| from_milliseconds(milliseconds(now)))
}

/// Reads keys with the tokens that are valid at this time, in the order of their ids. Keys without tokens are included.
pub(super) async fn read(
    connection: &TransactionConnection,
    select: SelectKeys<'_>,
    now: SystemTime,
) -> Result<Vec<KeyRows>, StoreFailure> {
    let (statement, parameter) = statement(&select);
    keys(&connection.query(&statement, &[parameter]).await?, now).map_err(corrupt)
}

/// Collects the rows of [`statement`].
pub(super) fn keys(rows: &[Row], now: SystemTime) -> Result<Vec<KeyRows>, Error> {
    let columns = |row: &Row| {
        let digest: Option<Vec<u8>> = row.try_get(3)?;
        let token = |digest| Ok((digest, row.try_get(4)?, row.try_get(5)?, row.try_get(6)?));
        Ok((
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
            digest.map(token).transpose()?,
        ))
    };
    KeyRows::collect(rows.iter().map(columns), now)
}

/// Writes a key with its tokens in place of what the database has of it. `None`: it does not exist. Other keys lose the
/// tokens that have expired, one of which may be that of the change.
pub(super) async fn write(
    connection: &TransactionConnection,
    id: &ApiKeyId,
    key: Option<&IssuedApiKey>,
    version: i64,
    now: SystemTime,
    forgets_uses: bool,
) -> Result<(), StoreFailure> {
    let (id, now) = (id.as_str(), milliseconds(now));
    let (id, version): (Parameter<'_>, Parameter<'_>) = ((&id, Type::TEXT), (&version, Type::INT8));
    connection
        .query(
            "UPDATE api_key_state SET version = $1",
            slice::from_ref(&version),
        )
        .await?;
    connection
        .query(
            "DELETE FROM api_key_tokens WHERE api_key_id = $1",
            slice::from_ref(&id),
        )
        .await?;
    connection
        .query(
            "DELETE FROM api_key_tokens WHERE expires_at <= $1",
            &[(&now, Type::INT8)],
        )
        .await?;
    if forgets_uses {
        connection
            .query(
                "DELETE FROM api_key_uses WHERE api_key_id = $1",
                slice::from_ref(&id),
            )
            .await?;
    }
    let Some(IssuedApiKey { key, tokens }) = key else {
        connection
            .query(
                "UPDATE api_keys SET version = $2 WHERE id = $1",
                &[id, version],
            )
            .await?;
        return Ok(());
    };
    let (label, scopes) = (key.label.as_str(), key.scopes.to_string());
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
    for token in tokens {
        let (digest, created) = (&token.digest.0[..], milliseconds(token.created));
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
