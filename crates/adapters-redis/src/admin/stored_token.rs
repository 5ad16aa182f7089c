use std::time::{Duration, UNIX_EPOCH};

use animal_store_app::{
    ApiKey,
    ports::{NewToken, TokenEntry},
};
use futures_util::future::try_join_all;
use redis::{Pipeline, RedisResult, aio::MultiplexedConnection, pipe};

use crate::token_hash::{KEY_FIELDS, KeyFields, TokenHashError, parse_token};

/// Further fields of a token, which only the administration reads.
const LAST_FOUR: &str = "last4";
const CREATED: &str = "created";

/// Number of tokens that are read concurrently.
const CONCURRENT_READS: usize = 500;
/// The last second that RFC 3339 can represent.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// A name that the index lists for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedToken {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A token that has not expired.
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) key: ApiKey,
    /// Time until it expires.
    pub(crate) ttl: Option<Duration>,
    /// Redis' time when the token was read, since 1970.
    now: Duration,
    last_four: String,
    /// Seconds since 1970.
    created: u64,
}

/// Reads the tokens that exist, each with the reason if it is not valid. A token that expired, or that belongs to another
/// key by now, is left out.
pub(crate) async fn read_all(
    connection: &MultiplexedConnection,
    indexed: &[IndexedToken],
) -> RedisResult<Vec<(IndexedToken, Result<StoredToken, TokenHashError>)>> {
    let mut found = Vec::new();
    for indexed in indexed.chunks(CONCURRENT_READS) {
        let tokens = try_join_all(indexed.iter().map(|indexed| read(connection.clone(), &indexed.name))).await?;
        for (indexed, token) in indexed.iter().zip(tokens) {
            match token {
                Ok(Some(token)) if token.key.id.as_str() == indexed.id => found.push((indexed.clone(), Ok(token))),
                Ok(_) => {}
                Err(corrupt) => found.push((indexed.clone(), Err(corrupt))),
            }
        }
    }
    Ok(found)
}

async fn read(
    mut connection: MultiplexedConnection,
    name: &str,
) -> RedisResult<Result<Option<StoredToken>, TokenHashError>> {
    type Response = (KeyFields, (Option<String>, Option<u64>), i64, (u64, u32));
    let mut query = pipe();
    query.cmd("HMGET").arg(name).arg(&KEY_FIELDS).cmd("HMGET").arg(name).arg(&[LAST_FOUR, CREATED]);
    query.cmd("PTTL").arg(name).cmd("TIME");
    let (fields, (last_four, created), pttl, now): Response = match query.query_async(&mut connection).await {
        Ok(response) => response,
        Err(error) => return TokenHashError::from_redis(&error).map(Err).ok_or(error),
    };
    let last_four = last_four.unwrap_or_default();
    Ok(parse_token(fields, pttl).and_then(|token| {
        let Some((key, ttl)) = token else { return Ok(None) };
        if last_four.chars().count() > 4 || last_four.contains(char::is_control) {
            return Err(TokenHashError("the last four characters are malformed"));
        }
        let created = created.unwrap_or_default();
        Ok(Some(StoredToken { name: name.to_owned(), key, ttl, now: parse_time(now), last_four, created }))
    }))
}

impl StoredToken {
    /// Returns when the token expires by Redis' clock, since 1970.
    pub(crate) fn expires(&self) -> Option<Duration> {
        self.ttl.map(|ttl| self.now.saturating_add(ttl))
    }

    pub(crate) fn into_entry(self) -> TokenEntry {
        let date = |since_1970: Duration| UNIX_EPOCH + Duration::from_secs(since_1970.min(LAST_SECOND).as_secs());
        let half_a_second = Duration::from_millis(500);
        let expires = self.expires().map(|expires| date(expires.saturating_add(half_a_second)));
        let created = date(Duration::from_secs(self.created));
        TokenEntry { key: self.key, last_four: self.last_four, created, expires }
    }
}

/// Adds the commands that store a token. `expires` is the time by Redis' clock, since 1970.
pub(crate) fn store(
    change: &mut Pipeline,
    name: &str,
    key: &ApiKey,
    token: &NewToken,
    now: Duration,
    expires: Option<Duration>,
) {
    let [id, label, scopes] = KEY_FIELDS;
    let mut command = redis::cmd("HSET");
    command.arg(name).arg(id).arg(key.id.as_str()).arg(label).arg(key.label.as_str());
    command.arg(scopes).arg(key.scopes.to_string());
    command.arg(LAST_FOUR).arg(&token.last_four).arg(CREATED).arg(now.as_secs());
    change.add_command(command).ignore();
    if let Some(expires) = expires {
        expire_at(change, name, expires);
    }
}

/// Adds the command that lets a token expire at this time by Redis' clock, since 1970.
pub(crate) fn expire_at(change: &mut Pipeline, name: &str, expires: Duration) {
    let milliseconds = u64::try_from(expires.min(LAST_SECOND).as_millis()).expect("13 digits");
    change.cmd("PEXPIREAT").arg(name).arg(milliseconds).ignore();
}

/// Parses the response to `TIME`: Redis' time, since 1970.
pub(crate) fn parse_time((seconds, microseconds): (u64, u32)) -> Duration {
    Duration::from_secs(seconds) + Duration::from_micros(microseconds.into())
}
