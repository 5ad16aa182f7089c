//! The index as Redis holds it: a hash with an entry for each key, by its id. An entry has the digests of the key's
//! tokens, oldest first. They may have expired, and may belong to another key now.

use std::{collections::BTreeMap, iter::zip};

use animal_store_app::{ApiKeyDigest, IssuedApiKey, ports::ChangedApiKey};
use redis::{Cmd, Pipeline, cmd, pipe};

use super::token::{ListedToken, StoredToken};
use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, parse_digest},
};

/// Deletes a key if its entry in the index is the one that was read, in one step that a full Redis executes as well.
///
/// `KEYS`: the index, and the tokens of the entry. `ARGV`: the id, the entry, and the condition. The first `HDEL` changes
/// nothing: it fails if the last one would, before any token is deleted. A token of the entry may have expired and
/// belong to another key of the index now. A value that is not a token is deleted.
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

/// Entries of the index, by the id of the key.
pub(super) type Index = BTreeMap<String, String>;

/// Which keys the script deletes.
#[derive(Clone, Copy)]
pub(super) enum Delete {
    Always,
    /// Only a key without a token.
    IfExpired,
}

impl Keyspace {
    /// Reads the keys of these entries, in the order of their ids. Leaves out tokens that now belong to another key. A
    /// key has the properties of its newest token.
    pub(super) async fn read_keys(
        &self,
        connection: &mut Connection,
        index: &Index,
    ) -> keyspace::Result<Vec<IssuedApiKey>> {
        let mut listed = Vec::new();
        for (id, entry) in index {
            listed.extend(digests(entry).map(|digest| ListedToken { id, digest }));
        }
        let tokens = self.read_tokens(connection, &listed).await?;
        let mut keys: Vec<IssuedApiKey> = Vec::new();
        for (listed, stored) in zip(listed, tokens) {
            let Some(StoredToken { key, token }) = stored else {
                continue;
            };
            if key.id.as_str() != listed.id {
                continue;
            }
            match keys.last_mut() {
                Some(older) if older.key.id == key.id => {
                    older.key = key;
                    older.tokens.push(token);
                }
                _ => keys.push(IssuedApiKey {
                    key,
                    tokens: vec![token],
                }),
            }
        }
        Ok(keys)
    }

    /// Returns the commands that make a change of a key.
    pub(super) fn replace(&self, id: &str, changed: &ChangedApiKey) -> Pipeline {
        let old = changed.before.as_ref().map_or(&[][..], |key| &key.tokens);
        let new = changed.after.as_ref().map_or(&[][..], |key| &key.tokens);
        let mut commands = pipe();
        for token in old {
            if new.iter().all(|new| new.digest != token.digest) {
                commands.del(self.token(&token.digest)).ignore();
            }
        }
        let mut digests = Vec::new();
        if let Some(IssuedApiKey { key, tokens }) = &changed.after {
            for token in tokens {
                digests.push(hex::encode(token.digest.0));
                if !old.contains(token) {
                    self.set_token(&mut commands, key, token);
                }
            }
        }
        // An entry without digests is removed as that of an expired key.
        let entry = digests.join(" ");
        commands.hset(&self.index, id, entry).ignore();
        commands
    }

    /// Returns commands that are replicated, and leave the index as it is: no key has an empty id.
    pub(super) fn touch_index(&self) -> Pipeline {
        let mut commands = pipe();
        commands.atomic();
        commands.hset(&self.index, "", "").ignore();
        commands.hdel(&self.index, "").ignore();
        commands
    }

    /// Returns the command that deletes a key with this entry.
    pub(super) fn delete(&self, id: &str, entry: &str, condition: Delete) -> Cmd {
        let mut names = vec![self.index.clone()];
        for digest in digests(entry) {
            names.push(self.token(&digest));
        }
        let condition = match condition {
            Delete::Always => "",
            Delete::IfExpired => "expired",
        };
        let mut script = cmd("EVAL");
        script.arg(DELETE_KEY);
        script.arg(names.len()).arg(names);
        script.arg(id).arg(entry).arg(condition);
        script
    }
}

fn digests(entry: &str) -> impl Iterator<Item = ApiKeyDigest> {
    entry
        .split_whitespace()
        .filter_map(|digest| parse_digest(digest.as_bytes()))
}
