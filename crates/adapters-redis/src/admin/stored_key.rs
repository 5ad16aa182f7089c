//! API keys as Redis holds them: an entry of the index for each key, and a hash for each token.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, IssuedApiKey, IssuedToken};
use redis::{Pipeline, RedisResult, Value, cmd, from_redis_value, pipe};

use crate::{
    connection::Connection,
    keyspace::RedisFailure,
    layout::{Layout, parse_digest},
    token::{KEY_FIELDS, parse_key},
};

/// The fields of a token. The times are milliseconds since 1970; without `expires`, the token does not expire.
const FIELDS: [&str; 6] = [KEY_FIELDS[0], KEY_FIELDS[1], KEY_FIELDS[2], "last4", "created", "expires"];
/// The last millisecond that can be printed, since 1970.
const LAST_TIME: u64 = 253_402_300_799_999;
/// Number of tokens that are read in one message.
const TOKENS_PER_MESSAGE: usize = 500;

/// Entries of the index: for each key, by id, the digests of its tokens, oldest first. They may have expired.
pub(super) type Index = BTreeMap<String, String>;

/// A key with one of its tokens, or the reason why the token is not valid.
pub(super) type FoundToken = Result<IssuedApiKey, RedisFailure>;

/// Reads the entry of a key, if there is one.
pub(super) async fn read_entry(
    connection: &mut Connection,
    layout: &Layout,
    id: &ApiKeyId,
) -> Result<Index, RedisFailure> {
    let digests: Option<String> = cmd("HGET").arg(&layout.index).arg(id.as_str()).query_async(connection).await?;
    Ok(digests.map(|digests| (id.as_str().to_owned(), digests)).into_iter().collect())
}

/// Reads the clock of Redis.
pub(super) async fn read_clock(connection: &mut Connection) -> Result<SystemTime, RedisFailure> {
    let (seconds, microseconds): (u64, u32) = cmd("TIME").query_async(connection).await?;
    Ok(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(microseconds.into()))
}

/// Returns the digests of an entry.
pub(super) fn parse_digests(entry: &str) -> impl Iterator<Item = ApiKeyDigest> {
    entry.split_whitespace().filter_map(|digest| parse_digest(digest.as_bytes()))
}

/// Reads the existing tokens of these entries, in their order. Leaves out tokens that now belong to another key.
pub(super) async fn read_entries(
    connection: &mut Connection,
    layout: &Layout,
    index: &Index,
) -> Result<Vec<FoundToken>, RedisFailure> {
    let (ids, digests): (Vec<_>, Vec<_>) =
        index.iter().flat_map(|(id, entry)| parse_digests(entry).map(move |digest| (id, digest))).unzip();
    let tokens = read_tokens(connection, layout, &digests).await?.into_iter().zip(ids);
    let found = tokens.filter_map(|(token, id)| match token? {
        Err(RedisFailure::Corrupt(reason)) => Some(Err(RedisFailure::Corrupt(format!("API key {id}: {reason}")))),
        token => Some(token).filter(|token| token.as_ref().is_ok_and(|token| token.key.id.as_str() == id)),
    });
    Ok(found.collect())
}

/// Reads the tokens with these digests. `None`: there is no such token.
pub(super) async fn read_tokens(
    connection: &mut Connection,
    layout: &Layout,
    digests: &[ApiKeyDigest],
) -> Result<Vec<Option<FoundToken>>, RedisFailure> {
    let mut tokens = Vec::with_capacity(digests.len());
    for digests in digests.chunks(TOKENS_PER_MESSAGE) {
        let mut query = pipe();
        for digest in digests {
            query.cmd("HMGET").arg(layout.token(digest)).arg(&FIELDS);
        }
        let responses: Vec<RedisResult<Value>> = query.ignore_errors().query_async(connection).await?;
        for (response, digest) in responses.into_iter().zip(digests) {
            let fields = response.and_then(|fields| Ok(from_redis_value(fields)?)).map_err(RedisFailure::from);
            match fields.and_then(|fields| parse_token(*digest, fields)) {
                // The permission is missing, for example.
                Err(failure @ RedisFailure::Command(_)) => return Err(failure),
                token => tokens.push(token.transpose()),
            }
        }
    }
    Ok(tokens)
}

fn parse_token(digest: ApiKeyDigest, fields: [Option<String>; 6]) -> Result<Option<IssuedApiKey>, RedisFailure> {
    let [id, label, scopes, last_four, created, expires] = fields;
    let Some(key) = parse_key([id, label, scopes])? else { return Ok(None) };
    let last_four = last_four.unwrap_or_default();
    if last_four.chars().count() > 4 || last_four.contains(char::is_control) {
        return Err(RedisFailure::corrupt("the last four characters are malformed"));
    }
    let [created, expires] = [parse_time(created)?, parse_time(expires)?];
    let token = IssuedToken { digest, last_four, created: created.unwrap_or(UNIX_EPOCH), expires };
    Ok(Some(IssuedApiKey { key, tokens: vec![token] }))
}

fn parse_time(field: Option<String>) -> Result<Option<SystemTime>, RedisFailure> {
    let Some(text) = field else { return Ok(None) };
    let time = text.parse().ok().filter(|time| *time <= LAST_TIME);
    let time = time.ok_or_else(|| RedisFailure::corrupt("the time of the creation or of the expiry is malformed"))?;
    Ok(Some(UNIX_EPOCH + Duration::from_millis(time)))
}

/// Joins the tokens of each key, oldest first. The newest one has the properties of the key.
pub(super) fn join_tokens(tokens: impl IntoIterator<Item = FoundToken>) -> Result<Vec<IssuedApiKey>, RedisFailure> {
    let mut keys = Vec::<IssuedApiKey>::new();
    for newer in tokens {
        let mut newer = newer?;
        if let Some(older) = keys.pop_if(|older| older.key.id == newer.key.id) {
            newer.tokens.splice(0..0, older.tokens);
        }
        keys.push(newer);
    }
    Ok(keys)
}

/// Returns the commands that replace a key by another state of it.
pub(super) fn replace(
    layout: &Layout,
    id: &ApiKeyId,
    before: Option<&IssuedApiKey>,
    after: Option<&IssuedApiKey>,
) -> Pipeline {
    let mut commands = pipe();
    if before == after {
        return commands;
    }
    let [old, new] = [before, after].map(|key| key.map_or(&[][..], |key| &key.tokens));
    for token in old.iter().filter(|old| new.iter().all(|new| new.digest != old.digest)) {
        commands.cmd("DEL").arg(layout.token(&token.digest)).ignore();
    }
    let Some(after) = after else {
        commands.cmd("HDEL").arg(&layout.index).arg(id.as_str()).ignore();
        return commands;
    };
    for token in new.iter().filter(|token| !old.contains(token)) {
        set_token(&mut commands, &layout.token(&token.digest), &after.key, token);
    }
    let digests: Vec<_> = new.iter().map(|token| hex::encode(token.digest.as_bytes())).collect();
    commands.cmd("HSET").arg(&layout.index).arg(id.as_str()).arg(digests.join(" ")).ignore();
    commands
}

/// Adds the commands that store a token, or another expiry of it.
fn set_token(commands: &mut Pipeline, name: &str, key: &ApiKey, token: &IssuedToken) {
    let expires = token.expires.map(milliseconds);
    let values = [
        key.id.as_str().to_owned(),
        key.label.as_str().to_owned(),
        key.scopes.to_string(),
        token.last_four.clone(),
        milliseconds(token.created),
    ];
    let fields: Vec<_> = FIELDS.into_iter().zip(values.into_iter().chain(expires.clone())).collect();
    commands.cmd("HSET").arg(name).arg(fields).ignore();
    if let Some(expires) = expires {
        commands.cmd("PEXPIREAT").arg(name).arg(expires).ignore();
    }
}

fn milliseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis().to_string()
}
