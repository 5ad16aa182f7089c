//! API keys as Redis holds them: an entry of the index for each key, and a hash for each token.

use std::collections::BTreeMap;

use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, IssuedApiKey, IssuedToken, milliseconds};
use redis::{Pipeline, RedisResult, Value, from_redis_value, pipe};

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure, parse_digest},
    token::{KEY_FIELDS, parse_key},
};

/// The fields of a token. The times are milliseconds since 1970; without `expires`, the token does not expire.
const FIELDS: [&str; 6] = [
    KEY_FIELDS[0],
    KEY_FIELDS[1],
    KEY_FIELDS[2],
    "last4",
    "created",
    "expires",
];
/// The values of [`FIELDS`].
type Fields = (
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<u64>,
);
/// Number of tokens that are read in one message.
const TOKENS_PER_MESSAGE: usize = 500;

/// Deletes a key if its entry in the index is the one that was read, in one step that a full Redis executes as well.
///
/// `KEYS`: the index, and the tokens of the entry. `ARGV`: the id, the entry, and `expired` if nothing is to be deleted
/// from a key that has a token. The first `HDEL` changes nothing: it fails if the last one would, before any token is
/// deleted. A token of the entry may have expired and belong to another key of the index now. A value that is not a
/// token is deleted.
const DELETE_KEY: &str = "
    if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return nil end
    redis.call('HDEL', KEYS[1], '')
    for i = 2, #KEYS do
        local owner = redis.pcall('HGET', KEYS[i], 'id')
        if owner == ARGV[1] and ARGV[3] == 'expired' then return nil end
        local moved = type(owner) == 'string' and owner ~= ARGV[1] and redis.call('HGET', KEYS[1], owner)
        if not moved then redis.call('DEL', KEYS[i]) end
    end
    redis.call('HDEL', KEYS[1], ARGV[1])
    return 1";

/// Entries of the index: for each key, by id, the digests of its tokens, oldest first. They may have expired.
pub(super) type Index = BTreeMap<String, String>;

impl Keyspace {
    /// Reads the keys of these entries. Leaves out tokens that now belong to another key. The newest token of a key has
    /// its properties.
    pub(super) async fn read_keys(
        &self,
        connection: &mut Connection,
        index: &Index,
    ) -> keyspace::Result<Vec<IssuedApiKey>> {
        let listed = index
            .iter()
            .flat_map(|(id, entry)| parse_entry(entry).map(move |digest| (id.as_str(), digest)));
        let mut keys = Vec::<IssuedApiKey>::new();
        for (id, mut newer) in self
            .read_tokens(connection, &listed.collect::<Vec<_>>())
            .await?
        {
            if newer.key.id.as_str() == id {
                if let Some(older) = keys.pop_if(|older| older.key.id == newer.key.id) {
                    newer.tokens.splice(0..0, older.tokens);
                }
                keys.push(newer);
            }
        }
        Ok(keys)
    }

    /// Reads tokens, of each key one by one. Leaves out those that do not exist. An error names the id that is given
    /// for a token.
    pub(super) async fn read_tokens<'a>(
        &self,
        connection: &mut Connection,
        listed: &[(&'a str, ApiKeyDigest)],
    ) -> keyspace::Result<Vec<(&'a str, IssuedApiKey)>> {
        let mut tokens = Vec::new();
        for listed in listed.chunks(TOKENS_PER_MESSAGE) {
            let mut query = pipe();
            for (_, digest) in listed {
                query.cmd("HMGET").arg(self.token(digest)).arg(&FIELDS);
            }
            let responses: Vec<RedisResult<Value>> =
                query.ignore_errors().query_async(connection).await?;
            for (response, (id, digest)) in responses.into_iter().zip(listed) {
                let fields = response
                    .and_then(|fields| Ok(from_redis_value(fields)?))
                    .map_err(RedisFailure::from);
                let token = fields
                    .and_then(|fields| parse_token(*digest, fields))
                    .map_err(|failure| match failure {
                        RedisFailure::Corrupt(reason) => {
                            RedisFailure::Corrupt(format!("API key {id}: {reason}"))
                        }
                        failure => failure,
                    });
                tokens.extend(token?.map(|token| (*id, token)));
            }
        }
        Ok(tokens)
    }

    /// Returns the commands that replace a key by another state of it.
    pub(super) fn replace(
        &self,
        id: &ApiKeyId,
        before: Option<&IssuedApiKey>,
        after: Option<&IssuedApiKey>,
    ) -> Pipeline {
        let mut commands = pipe();
        if before == after {
            return commands;
        }
        let [old, new] = [before, after].map(|key| key.map_or(&[][..], |key| &key.tokens));
        for token in old
            .iter()
            .filter(|old| new.iter().all(|new| new.digest != old.digest))
        {
            commands.cmd("DEL").arg(self.token(&token.digest)).ignore();
        }
        if let Some(after) = after {
            for token in new.iter().filter(|token| !old.contains(token)) {
                self.set_token(&mut commands, &after.key, token);
            }
        }
        // The next list removes an entry without digests.
        let digests: Vec<_> = new
            .iter()
            .map(|token| hex::encode(token.digest.0))
            .collect();
        commands
            .cmd("HSET")
            .arg(&self.index)
            .arg(id.as_str())
            .arg(digests.join(" "))
            .ignore();
        commands
    }

    /// Adds the commands that store a token, or another expiry of it.
    fn set_token(&self, commands: &mut Pipeline, key: &ApiKey, token: &IssuedToken) {
        let name = self.token(&token.digest);
        let [id, label, scopes, last_four, created, expiry] = FIELDS;
        commands
            .cmd("HSET")
            .arg(&name)
            .arg(id)
            .arg(key.id.as_str())
            .arg(label)
            .arg(key.label.as_str());
        commands
            .arg(scopes)
            .arg(key.scopes.to_string())
            .arg(last_four)
            .arg(&token.last_four);
        commands
            .arg(created)
            .arg(milliseconds(token.created))
            .ignore();
        if let Some(expires) = token.expires.map(milliseconds) {
            commands
                .arg(expiry)
                .arg(expires)
                .cmd("PEXPIREAT")
                .arg(name)
                .arg(expires)
                .ignore();
        }
    }

    /// Returns the command that deletes a key with this entry.
    pub(super) fn delete(&self, id: &str, entry: &str, condition: &str) -> Pipeline {
        let tokens: Vec<_> = parse_entry(entry)
            .map(|digest| self.token(&digest))
            .collect();
        let mut command = pipe();
        command
            .cmd("EVAL")
            .arg(DELETE_KEY)
            .arg(1 + tokens.len())
            .arg(&self.index)
            .arg(tokens);
        command.arg(id).arg(entry).arg(condition);
        command
    }
}

/// Returns the digests of an entry.
fn parse_entry(entry: &str) -> impl Iterator<Item = ApiKeyDigest> {
    entry
        .split_whitespace()
        .filter_map(|digest| parse_digest(digest.as_bytes()))
}

fn parse_token(digest: ApiKeyDigest, fields: Fields) -> keyspace::Result<Option<IssuedApiKey>> {
    let (id, label, scopes, last_four, created, expires) = fields;
    let Some(key) = parse_key([id, label, scopes])? else {
        return Ok(None);
    };
    let time = |milliseconds| i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let (last_four, created) = (
        last_four.unwrap_or_default(),
        time(created.unwrap_or_default()),
    );
    let token = IssuedToken::from_stored(digest, last_four, created, expires.map(time));
    Ok(Some(IssuedApiKey {
        key,
        tokens: vec![token.map_err(RedisFailure::corrupt)?],
    }))
}
