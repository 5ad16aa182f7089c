//! The record of uses in Redis, which instances write and the administration reads.
//!
//! For each kind of use, a sorted set has the ids of the keys, each with the time of its last use as its score (seconds
//! since 1970, a whole minute). A third set has the time at which the record began. `ZADD GT` never moves a time
//! backwards, and `ZADD NX` never changes the beginning: instances can write in any order, and can repeat a write. The
//! names lie outside of the prefix that invalidations follow, so a write invalidates nothing.

use std::{collections::HashMap, iter::zip, time::SystemTime};

use animal_store_adapter_kit::{ApiKeyUseRecord, PendingUses, UseStore};
use animal_store_app::{
    ApiKeyId, from_milliseconds,
    ports::{ApiKeyUse, RecordedUses},
};
use prometheus_client::registry::Registry;
use redis::{Pipeline, RedisResult, SortedSetAddOptions, UpdateCheck, pipe};
use tokio::task::JoinHandle;

use crate::{
    connection::{Connection, RedisEndpoint, describe},
    keyspace::{self, Keyspace},
    settings::RedisSettings,
};

/// The members of a sorted set, with their scores.
type Scores = Vec<(String, f64)>;

/// The only member of the set with the beginning of the record.
const BEGINNING: &str = "beginning";
/// Number of keys in a command, so that no command occupies Redis for long.
const KEYS_PER_COMMAND: usize = 1000;

/// Uses of API keys in Redis.
pub struct RedisApiKeyUses(Keyspace);

impl RedisApiKeyUses {
    /// Starts the record of uses, and registers its metrics. See [`ApiKeyUseRecord::start`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        endpoint: RedisEndpoint,
        settings: &RedisSettings,
        registry: &mut Registry,
    ) -> (ApiKeyUseRecord, JoinHandle<()>) {
        let store = Self(Keyspace::new(endpoint, &settings.prefix, settings.timeout));
        ApiKeyUseRecord::start(store, settings.max_known, settings.use_interval, registry)
    }
}

impl UseStore for RedisApiKeyUses {
    fn address(&self) -> String {
        self.0.endpoint.to_string()
    }

    async fn write(&self, uses: &PendingUses, now: i64) -> Result<(), String> {
        let keyspace = &self.0;
        let connected = keyspace.connect().await;
        let mut connection = connected.map_err(|failure| keyspace.describe(&failure))?;
        let commands = write_commands(keyspace, uses, now);
        let written = commands.exec_async(&mut connection).await;
        written.map_err(|error| describe(&keyspace.endpoint, &error, &keyspace.uses("*")))
    }
}

fn write_commands(keyspace: &Keyspace, uses: &PendingUses, now: i64) -> Pipeline {
    let mut commands = pipe();
    let begins = SortedSetAddOptions::add_only();
    commands.zadd_options(keyspace.uses("since"), BEGINNING, now, &begins);
    let later = SortedSetAddOptions::add_or_update(Some(UpdateCheck::GT));
    for (kind, times) in uses.iter() {
        let name = keyspace.last_uses(kind);
        let mut scores = Vec::new();
        for (id, time) in times {
            scores.push((time, id.as_str()));
        }
        for scores in scores.chunks(KEYS_PER_COMMAND) {
            commands.zadd_multiple_options(&name, scores, &later);
        }
    }
    commands
}

/// Reads the last uses of the keys in the index.
pub(crate) async fn read(keyspace: &Keyspace) -> keyspace::Result<RecordedUses> {
    let mut query = pipe();
    query.zrange_withscores(keyspace.uses("since"), 0, -1);
    for kind in ApiKeyUse::ALL {
        query.zrange_withscores(keyspace.last_uses(kind), 0, -1);
    }
    // After the uses: a key that was used is in the index, unless it was revoked or has expired.
    query.hgetall(&keyspace.index);
    let mut connection = keyspace.connect().await?;
    let (since, requests, get_pet, index): (Scores, Scores, Scores, HashMap<String, String>) =
        query.query_async(&mut connection).await?;

    let mut uses = RecordedUses {
        since: since.first().map(|(_, score)| time(*score)),
        ..RecordedUses::default()
    };
    for (kind, scores) in zip(ApiKeyUse::ALL, [requests, get_pet]) {
        for (id, score) in scores {
            if let Ok(key) = ApiKeyId::parse(&id)
                && index.contains_key(&id)
            {
                uses.last.insert((key, kind), time(score));
            }
        }
    }
    Ok(uses)
}

/// Deletes the uses of a key.
pub(crate) async fn delete(
    keyspace: &Keyspace,
    connection: &mut Connection,
    id: &str,
) -> RedisResult<()> {
    let mut commands = pipe();
    for kind in ApiKeyUse::ALL {
        commands.zrem(keyspace.last_uses(kind), id);
    }
    commands.exec_async(connection).await
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn time(score: f64) -> SystemTime {
    from_milliseconds((score as i64).saturating_mul(1000))
}
