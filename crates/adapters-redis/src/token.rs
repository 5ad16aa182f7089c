//! The hash that Redis holds for a token, as a lookup reads it: the API key, and the time until the token expires.

use std::{sync::Arc, time::Duration};

use animal_store_app::ApiKey;
use redis::pipe;

use crate::{
    concurrency::Instant,
    connection::Connection,
    keyspace::{self, RedisFailure},
};

pub(crate) const ID: &str = "id";
pub(crate) const LABEL: &str = "label";
pub(crate) const SCOPES: &str = "scopes";
/// The fields that describe the API key of a token.
const KEY_FIELDS: [&str; 3] = [ID, LABEL, SCOPES];

/// The values of [`KEY_FIELDS`], as far as there are any.
type KeyFields = [Option<String>; 3];

/// The result of a lookup.
#[derive(Debug, Clone)]
pub(crate) struct TokenRecord {
    /// The key that the token belongs to, if any.
    pub(crate) key: Option<Arc<ApiKey>>,
    /// When the token expires, if it does.
    pub(crate) expires: Option<Instant>,
}

/// Queries Redis for the token with this name, within the timeout of the connection.
pub(crate) async fn find(mut connection: Connection, name: &str) -> keyspace::Result<TokenRecord> {
    // The time to live is counted from before the query: an entry expires early, never late.
    let sent = Instant::now();
    let mut query = pipe();
    query.cmd("HMGET").arg(name).arg(&KEY_FIELDS);
    query.cmd("PTTL").arg(name);
    let (fields, ttl): (KeyFields, i64) = query.query_async(&mut connection).await?;
    // -1: the token does not expire. -2: it does not exist.
    let key = if ttl == -2 { None } else { parse_key(fields)? };
    let time_to_live = u64::try_from(ttl).ok().map(Duration::from_millis);
    Ok(TokenRecord {
        key: key.map(Arc::new),
        expires: time_to_live.map(|time| sent + time),
    })
}

/// Parses the values of [`KEY_FIELDS`]. `None`: there is no such token.
pub(crate) fn parse_key(fields: KeyFields) -> keyspace::Result<Option<ApiKey>> {
    match fields {
        [None, None, None] => Ok(None),
        [Some(id), Some(label), Some(scopes)] => {
            let key = ApiKey::from_stored(&id, &label, &scopes);
            Ok(Some(key.map_err(RedisFailure::corrupt)?))
        }
        _ => Err(RedisFailure::corrupt(
            "the id, the label or the scopes are missing",
        )),
    }
}
