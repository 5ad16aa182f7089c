//! A token as Redis holds it: a hash. A lookup reads three of its fields, see `crate::token`.

use std::iter::zip;

use animal_store_app::{ApiKey, ApiKeyDigest, IssuedToken, milliseconds};
use redis::{Pipeline, RedisError, RedisResult, Value, from_redis_value, pipe};

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
    token::{ID, LABEL, SCOPES, parse_key},
};

const LAST_FOUR: &str = "last4";
/// Milliseconds since 1970.
const CREATED: &str = "created";
/// Milliseconds since 1970. Without this field, the token does not expire.
const EXPIRES: &str = "expires";
/// Number of tokens that are read in one message.
const TOKENS_PER_MESSAGE: usize = 500;

/// A token that is listed for a key.
pub(super) struct ListedToken<'a> {
    /// The id of the key: that of an error.
    pub(super) id: &'a str,
    pub(super) digest: ApiKeyDigest,
}

/// A token, and the key that it belongs to.
pub(super) struct StoredToken {
    pub(super) key: ApiKey,
    pub(super) token: IssuedToken,
}

impl Keyspace {
    /// Reads tokens, and returns them in this order. `None`: there is no such token.
    pub(super) async fn read_tokens(
        &self,
        connection: &mut Connection,
        listed: &[ListedToken<'_>],
    ) -> keyspace::Result<Vec<Option<StoredToken>>> {
        let fields = [ID, LABEL, SCOPES, LAST_FOUR, CREATED, EXPIRES];
        let mut tokens = Vec::new();
        for listed in listed.chunks(TOKENS_PER_MESSAGE) {
            let mut query = pipe();
            for token in listed {
                query.hmget(self.token(&token.digest), &fields);
            }
            let responses: Vec<RedisResult<Value>> =
                query.ignore_errors().query_async(connection).await?;
            for (response, token) in zip(responses, listed) {
                let stored = parse(token.digest, response);
                tokens.push(stored.map_err(|failure| failure.of_key(token.id))?);
            }
        }
        Ok(tokens)
    }

    /// Adds the commands that store a token, or another expiry of it.
    pub(super) fn set_token(&self, commands: &mut Pipeline, key: &ApiKey, token: &IssuedToken) {
        let name = self.token(&token.digest);
        let scopes = key.scopes.to_string();
        // `hset_multiple` of the driver sends HMSET, which needs a permission of its own.
        let hash = commands.cmd("HSET").arg(&name);
        hash.arg(ID).arg(key.id.as_str());
        hash.arg(LABEL).arg(key.label.as_str());
        hash.arg(SCOPES).arg(scopes);
        hash.arg(LAST_FOUR).arg(&token.last_four);
        hash.arg(CREATED).arg(milliseconds(token.created));
        let expires = token.expires.map(milliseconds);
        if let Some(expires) = expires {
            hash.arg(EXPIRES).arg(expires);
        }
        hash.ignore();
        if let Some(expires) = expires {
            commands.pexpire_at(name, expires).ignore();
        }
    }
}

fn parse(
    digest: ApiKeyDigest,
    response: RedisResult<Value>,
) -> keyspace::Result<Option<StoredToken>> {
    let fields: [Option<String>; 6] = from_redis_value(response?).map_err(RedisError::from)?;
    let [id, label, scopes, last_four, created, expires] = fields;
    let Some(key) = parse_key([id, label, scopes])? else {
        return Ok(None);
    };
    let last_four = last_four.unwrap_or_default();
    let created = parse_time(created)?.unwrap_or_default();
    let expires = parse_time(expires)?;
    let token = IssuedToken::from_stored(digest, last_four, created, expires);
    Ok(Some(StoredToken {
        key,
        token: token.map_err(RedisFailure::corrupt)?,
    }))
}

fn parse_time(field: Option<String>) -> keyspace::Result<Option<i64>> {
    let Some(text) = field else {
        return Ok(None);
    };
    match text.parse() {
        Ok(time) => Ok(Some(time)),
        Err(_) => Err(RedisFailure::corrupt("a field is malformed")),
    }
}
