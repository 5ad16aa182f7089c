use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{ApiKey, ApiKeyId, ApiKeyLabel, Scopes, ports::TokenEntry};
use futures_util::future::try_join_all;
use redis::{Pipeline, pipe};

use super::error::StoreError;
use crate::{
    connection::Connection,
    time::{LAST_SECOND, date},
    token_hash::{KEY_FIELDS, KeyFields, TokenHashError, parse_token},
};

/// Further fields of a token, which only the administration reads.
const LAST_FOUR: &str = "last4";
const CREATED: &str = "created";

/// Number of tokens that are read concurrently.
const CONCURRENT_READS: usize = 500;

/// A name that the index lists for a key.
pub(crate) struct IndexedToken {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A token that has not expired.
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) key: ApiKey,
    /// When it expires by Redis' clock, since 1970.
    pub(crate) expires: Option<Duration>,
    pub(crate) last_four: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
}

/// The response to the commands that read a token.
type Response = (KeyFields, (Option<String>, Option<u64>), i64, (u64, u32));

/// An existing token, or the reason why it is not valid.
pub(crate) type FoundToken = Result<StoredToken, StoreError>;

/// Reads the existing tokens. Leaves out tokens that expired or that now belong to another key.
pub(crate) async fn read_all(connection: &Connection, indexed: &[IndexedToken]) -> Result<Vec<FoundToken>, StoreError> {
    let mut found = Vec::new();
    for indexed in indexed.chunks(CONCURRENT_READS) {
        let tokens = try_join_all(indexed.iter().map(|indexed| read(connection.clone(), indexed))).await?;
        found.extend(tokens.into_iter().flatten());
    }
    Ok(found)
}

/// Reads the existing tokens. Fails if one of them is not valid.
pub(crate) async fn read_valid(
    connection: &Connection,
    indexed: &[IndexedToken],
) -> Result<Vec<StoredToken>, StoreError> {
    read_all(connection, indexed).await?.into_iter().collect()
}

async fn read(
    mut connection: Connection,
    IndexedToken { id, name }: &IndexedToken,
) -> Result<Option<FoundToken>, StoreError> {
    let mut query = pipe();
    query.cmd("HMGET").arg(name).arg(&KEY_FIELDS).cmd("HMGET").arg(name).arg(&[LAST_FOUR, CREATED]);
    query.cmd("PTTL").arg(name).cmd("TIME");
    let token = match query.query_async(&mut connection).await {
        Ok(response) => StoredToken::parse(name, response),
        Err(error) => Err(TokenHashError::from_redis(&error).ok_or(error)?),
    };
    let token = token.map_err(|error| StoreError::CorruptToken(id.clone(), error)).transpose();
    Ok(token.filter(|token| token.as_ref().map_or(true, |token| token.key.id.as_str() == id)))
}

/// Returns the key of the newest valid token, or a key with the label `unreadable` if no token is valid. `None`: there
/// are no tokens.
pub(crate) fn newest_key(found: &[FoundToken], id: &ApiKeyId) -> Option<ApiKey> {
    let newest = found.iter().rev().find_map(|token| token.as_ref().ok());
    let label = ApiKeyLabel::parse("unreadable").expect("a valid label");
    let unreadable = ApiKey { id: id.clone(), label, scopes: Scopes::default() };
    (!found.is_empty()).then(|| newest.map_or(unreadable, |token| token.key.clone()))
}

impl StoredToken {
    fn parse(name: &str, (fields, (last_four, created), pttl, now): Response) -> Result<Option<Self>, TokenHashError> {
        let Some((key, ttl)) = parse_token(fields, pttl)? else { return Ok(None) };
        let last_four = last_four.unwrap_or_default();
        if last_four.chars().count() > 4 || last_four.contains(char::is_control) {
            return Err(TokenHashError("the last four characters are malformed"));
        }
        let expires = ttl.map(|ttl| parse_time(now).saturating_add(ttl));
        Ok(Some(Self { name: name.to_owned(), key, expires, last_four, created: created.unwrap_or_default() }))
    }

    pub(crate) fn into_entry(self) -> TokenEntry {
        let created = date(Duration::from_secs(self.created));
        TokenEntry { key: self.key, last_four: self.last_four, created, expires: self.expires.map(nearest_second) }
    }
}

/// Returns when the tokens expire, to the millisecond: `None` if one has expired, `Some(None)` if it never does.
pub(crate) async fn expiries(
    connection: &mut Connection,
    tokens: &[StoredToken],
) -> Result<Vec<Option<Option<SystemTime>>>, StoreError> {
    let mut expiries: Vec<i64> = Vec::with_capacity(tokens.len());
    for tokens in tokens.chunks(CONCURRENT_READS) {
        let mut query = pipe();
        for token in tokens {
            query.cmd("PEXPIRETIME").arg(&token.name);
        }
        expiries.extend(query.query_async::<Vec<i64>>(connection).await?);
    }
    let expiry = |milliseconds| match u64::try_from(milliseconds) {
        Ok(milliseconds) => Some(Some(UNIX_EPOCH + Duration::from_millis(milliseconds))),
        Err(_) => (milliseconds == -1).then_some(None),
    };
    Ok(expiries.into_iter().map(expiry).collect())
}

/// Returns a computed expiry to the second: the time to live and the clock are not read at the same moment.
pub(crate) fn nearest_second(expires: Duration) -> SystemTime {
    date(expires.saturating_add(Duration::from_millis(500)))
}

/// Adds the commands that store a token. The times are those of Redis' clock, since 1970.
pub(crate) fn set_token(
    change: &mut Pipeline,
    name: &str,
    key: &ApiKey,
    last_four: &str,
    created: Duration,
    expires: Option<Duration>,
) {
    let [id, label, scopes] = KEY_FIELDS;
    change.cmd("HSET").arg(name).arg(id).arg(key.id.as_str()).arg(label).arg(key.label.as_str());
    change.arg(scopes).arg(key.scopes.to_string());
    change.arg(LAST_FOUR).arg(last_four).arg(CREATED).arg(created.as_secs()).ignore();
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
