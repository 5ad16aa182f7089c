//! The part of `animal-store doctor` about Redis: what has stopped services or lost keys.
//!
//! It executes the commands of a session and of a lookup, and changes nothing. Each response has a timeout. A subject
//! that cannot be examined hides no other, unless the connection is lost. Proof: `tests/redis/diagnosis.rs`.

use std::{collections::HashMap, ops::ControlFlow};

use animal_store_app::{ApiKeyDigest, Finding, ports::ApiKeyStore};
use redis::{AsyncTypedCommands, InfoDict, RedisResult, Value, cmd, from_redis_value};

use crate::{
    admin::RedisApiKeyStore,
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace, RedisFailure},
    lookup::tracking_command,
    settings::RedisSettings,
    token,
};

const CONNECTION: &str = "redis.connection";
const MODE: &str = "redis.mode";
const PERMISSIONS: &str = "redis.permissions";
const INDEX: &str = "redis.index";
const PERSISTENCE: &str = "redis.persistence";
const EVICTION: &str = "redis.eviction";

/// Checks the commands of a change, without applying one.
pub async fn diagnose_administration(
    endpoint: &RedisEndpoint,
    settings: &RedisSettings,
) -> Finding {
    let store = RedisApiKeyStore::new(endpoint.clone(), &settings.prefix, settings.timeout, 0);
    match store.check_writable().await {
        Ok(()) => Finding::ok(
            "redis.admin",
            format!("{endpoint}: API keys can be changed"),
        ),
        Err(failure) => Finding::error(
            "redis.admin",
            failure.reason(),
            "check keys.redis.admin_url, and the permissions of its user",
        ),
    }
}

/// Examines a Redis server. The number of commands is fixed, and each has the timeout of the settings.
pub async fn diagnose(endpoint: &RedisEndpoint, settings: &RedisSettings) -> Vec<Finding> {
    let keyspace = Keyspace::new(endpoint.clone(), &settings.prefix, settings.timeout);
    let connection = match keyspace.connect().await {
        Ok(connection) => connection,
        Err(failure) => {
            return vec![Finding::error(
                CONNECTION,
                keyspace.describe(&failure),
                "check keys.redis.url, and whether Redis runs and accepts the user",
            )];
        }
    };
    let mut examination = Examination {
        keyspace,
        connection,
        findings: vec![Finding::ok(CONNECTION, endpoint.to_string())],
    };
    let _ = examination.run().await;
    examination.findings
}

struct Examination {
    keyspace: Keyspace,
    connection: Connection,
    findings: Vec<Finding>,
}

impl Examination {
    /// Examines each subject. Breaks if the connection is lost.
    async fn run(&mut self) -> ControlFlow<()> {
        let mode = self.inspect_mode().await;
        self.add(MODE, mode)?;
        let permissions = self.inspect_permissions().await;
        self.add(PERMISSIONS, permissions)?;
        let index = self.inspect_index().await;
        self.add(INDEX, index)?;
        let persistence = self.inspect_persistence().await;
        self.add(PERSISTENCE, persistence)?;
        let eviction = self.inspect_eviction().await;
        self.add(EVICTION, eviction)
    }

    fn add(
        &mut self,
        subject: &'static str,
        finding: keyspace::Result<Finding>,
    ) -> ControlFlow<()> {
        let failure = match finding {
            Ok(finding) => {
                self.findings.push(finding);
                return ControlFlow::Continue(());
            }
            Err(failure) => failure,
        };
        let reason = self.keyspace.describe(&failure);
        let advice =
            "see \"Users of Redis\" and \"What happens when Redis …\" in docs/operations/redis.md";
        self.findings.push(Finding::error(subject, reason, advice));
        if failure.is_disconnection() || matches!(failure, RedisFailure::Timeout) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    async fn inspect_mode(&mut self) -> keyspace::Result<Finding> {
        let hello = cmd("HELLO").arg(3).query_async(&mut self.connection).await;
        let mut hello: HashMap<String, Value> = hello?;
        let mode = hello.remove("mode");
        let mode: Option<String> = mode.and_then(|mode| from_redis_value(mode).ok());
        let mode = mode.unwrap_or_default();
        if mode == "standalone" {
            return Ok(Finding::ok(MODE, "standalone, master"));
        }
        let advice = "use one Redis server, or Sentinel: Cluster is not supported";
        Ok(Finding::error(MODE, mode, advice))
    }

    async fn inspect_permissions(&mut self) -> keyspace::Result<Finding> {
        let tracking = tracking_command(&self.keyspace);
        tracking.exec_async(&mut self.connection).await?;
        let unknown = self.keyspace.token(&ApiKeyDigest([0; 32]));
        token::find(self.connection.clone(), &unknown).await?;
        let found = "API keys can be looked up, and revoked keys are reported at once";
        Ok(Finding::ok(PERMISSIONS, found))
    }

    async fn inspect_index(&mut self) -> keyspace::Result<Finding> {
        let index = &self.keyspace.index;
        if self.connection.exists(index).await? {
            // The documented user may not execute TYPE.
            let mut query = cmd("HMGET");
            let field = query.arg(index).arg("").exec_async(&mut self.connection);
            let field = field.await;
            if matches!(&field, Err(error) if error.code() == Some("WRONGTYPE")) {
                return Ok(Finding::error(
                    INDEX,
                    format!("{index} is not a hash: API keys cannot be created, listed or revoked"),
                    "restore Redis from a backup, and see which program has replaced the index",
                ));
            }
            field?;
            return Ok(Finding::ok(INDEX, index.as_str()));
        }
        Ok(Finding::warning(
            INDEX,
            format!("{index} does not exist: every request gets 401"),
            "create a key with `animal-store keys create` as a user of Redis who may (keys.redis.admin_url); if there \
             were keys, check keys.redis.prefix, the database in keys.redis.url, and whether Redis has lost its data",
        ))
    }

    async fn inspect_persistence(&mut self) -> keyspace::Result<Finding> {
        let append_only = self.setting("appendonly", "aof_enabled").await?;
        let fsync = self.setting("appendfsync", "").await?;
        let save = self.setting("save", "").await?;
        let advice = "set appendonly yes and appendfsync always";
        let Some(append_only) = append_only else {
            return Ok(hidden(PERSISTENCE, advice));
        };
        if matches!(&*append_only, "yes" | "1") {
            return Ok(match fsync.as_deref() {
                Some("always") => Finding::ok(PERSISTENCE, "appendonly yes, appendfsync always"),
                None => Finding::ok(PERSISTENCE, "appendonly yes; appendfsync is hidden"),
                Some(_) => {
                    Finding::warning(PERSISTENCE, "a crash can undo the last revocations", advice)
                }
            });
        }
        if save.as_deref() == Some("") {
            let problem = "a restart loses all API keys";
            return Ok(Finding::error(PERSISTENCE, problem, advice));
        }
        let problem = "a crash undoes the changes since the last snapshot";
        Ok(Finding::warning(PERSISTENCE, problem, advice))
    }

    async fn inspect_eviction(&mut self) -> keyspace::Result<Finding> {
        let limit = self.setting("maxmemory", "maxmemory").await?;
        let policy = self.setting("maxmemory-policy", "maxmemory_policy").await?;
        let advice = "set maxmemory-policy noeviction";
        let Some(limit) = limit else {
            return Ok(hidden(EVICTION, advice));
        };
        let Some(policy) = policy else {
            return Ok(hidden(EVICTION, advice));
        };
        if limit == "0" || policy == "noeviction" {
            return Ok(Finding::ok(EVICTION, "nothing is evicted"));
        }
        let problem = format!("{policy}: Redis can evict API keys");
        Ok(Finding::error(EVICTION, problem, advice))
    }

    /// Returns a setting, or `None` if it is hidden. `INFO` has some of the settings, by other names.
    async fn setting(&mut self, name: &str, in_info: &str) -> RedisResult<Option<String>> {
        let mut query = cmd("CONFIG");
        query.arg("GET").arg(name);
        let config = query.query_async(&mut self.connection).await;
        if let Some(mut config) = unless_refused::<HashMap<String, String>>(config)? {
            return Ok(config.remove(name));
        }
        let info = cmd("INFO").query_async(&mut self.connection).await;
        let info = unless_refused::<InfoDict>(info)?;
        Ok(info.and_then(|info| info.get(in_info)))
    }
}

/// Returns `None` if Redis refused the command.
fn unless_refused<T>(response: RedisResult<T>) -> RedisResult<Option<T>> {
    match response {
        Err(error) if error.code().is_some() => Ok(None),
        response => response.map(Some),
    }
}

fn hidden(subject: &'static str, advice: &str) -> Finding {
    Finding::unknown(
        subject,
        "neither CONFIG GET nor INFO is permitted",
        format!("as an administrator: {advice}"),
    )
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::RedisError;

    use super::*;

    #[test]
    fn a_connection_that_ends_is_not_taken_for_a_command_that_redis_refuses() {
        let ended = RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(unless_refused::<()>(Err(ended)).is_err());
    }
}
