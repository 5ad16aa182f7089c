use std::collections::BTreeMap;

use animal_store_app::ApiKeyId;
use redis::{Pipeline, cmd};

use super::{
    error::StoreError,
    store::RedisApiKeyStore,
    stored_token::{IndexedToken, StoredToken, read_valid},
};
use crate::connection::Connection;

/// Deletes a key if its entry in the index is the one that was read, in one step that a full Redis executes as well.
///
/// `KEYS`: the index, and the tokens of the entry. `ARGV`: the id and the entry. The first `HDEL` changes nothing: it
/// fails if the last one would, before any token is deleted. A token of the entry may have expired and belong to
/// another key of the index now. A value that is not a token is deleted.
const DELETE_KEY: &str = "
    if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
    redis.call('HDEL', KEYS[1], '')
    for i = 2, #KEYS do
        local owner = redis.pcall('HGET', KEYS[i], 'id')
        local moved = type(owner) == 'string' and owner ~= ARGV[1] and redis.call('HEXISTS', KEYS[1], owner) == 1
        if not moved then redis.call('DEL', KEYS[i]) end
    end
    redis.call('HDEL', KEYS[1], ARGV[1])
    return 1";

/// What the index has for a key.
pub(super) struct IndexEntry {
    id: String,
    digests: String,
    /// The tokens, oldest first. They may have expired.
    pub(super) tokens: Vec<IndexedToken>,
}

impl RedisApiKeyStore {
    /// Returns the index, and the valid tokens in its order: by key id and, for one key, oldest first.
    pub(super) async fn read_index(
        &self,
        connection: &mut Connection,
    ) -> Result<(BTreeMap<String, String>, Vec<StoredToken>), StoreError> {
        let index: BTreeMap<String, String> = cmd("HGETALL").arg(&self.layout.index).query_async(connection).await?;
        let tokens: Vec<_> = index.iter().flat_map(|(id, digests)| self.parse_digests(id, digests)).collect();
        let tokens = read_valid(connection, &tokens).await?;
        Ok((index, tokens))
    }

    pub(super) async fn read_entry(
        &self,
        connection: &mut Connection,
        id: &ApiKeyId,
    ) -> Result<Option<IndexEntry>, StoreError> {
        let digests: Option<String> =
            cmd("HGET").arg(&self.layout.index).arg(id.as_str()).query_async(connection).await?;
        Ok(digests.map(|digests| {
            let (id, tokens) = (id.as_str().to_owned(), self.parse_digests(id.as_str(), &digests));
            IndexEntry { id, digests, tokens }
        }))
    }

    fn parse_digests(&self, id: &str, digests: &str) -> Vec<IndexedToken> {
        let token = |digest| IndexedToken { id: id.to_owned(), name: format!("{}{digest}", self.layout.tokens) };
        digests.split_whitespace().map(token).collect()
    }

    /// Adds the command that lists these names for a key, oldest first.
    pub(super) fn set_tokens(&self, change: &mut Pipeline, id: &ApiKeyId, names: &[String]) {
        let digests: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(&self.layout.tokens)).collect();
        change.cmd("HSET").arg(&self.layout.index).arg(id.as_str()).arg(digests.join(" ")).ignore();
    }

    /// Deletes the entry and its tokens. Returns `false` if the entry was changed meanwhile: nothing was deleted.
    pub(super) async fn delete_key(&self, connection: &mut Connection, entry: &IndexEntry) -> Result<bool, StoreError> {
        let mut command = cmd("EVAL");
        command.arg(DELETE_KEY).arg(1 + entry.tokens.len()).arg(&self.layout.index);
        for token in &entry.tokens {
            command.arg(&token.name);
        }
        command.arg(&entry.id).arg(&entry.digests).query_async(connection).await.map_err(StoreError::Write)
    }
}
