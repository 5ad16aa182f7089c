//! The part of `animal-store doctor` about Redis: what has stopped services or lost keys.
//!
//! It executes the commands of a session and of a lookup, and changes nothing. Each response has a timeout. A subject
//! that cannot be examined hides no other, unless the connection is lost. Proof: `tests/redis/diagnosis.rs`.

use std::collections::HashMap;

use animal_store_app::{ApiKeyDigest, Finding, ports::ApiKeyStore};
use futures_util::future::BoxFuture;
use redis::{InfoDict, RedisResult, Value, cmd, from_redis_value};

use crate::{
    admin::RedisApiKeyStore,
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace, RedisFailure},
    lookup::tracking_command,
    settings::RedisSettings,
    token,
};

type Inspected = keyspace::Result<Finding>;

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
    let advice = "check keys.redis.url, and whether Redis runs and accepts the user";
    let keyspace = Keyspace::new(endpoint.clone(), &settings.prefix, settings.timeout);
    let connection = match keyspace.connect(|_| ()).await {
        Ok(connection) => connection,
        Err(failure) => {
            return vec![Finding::error(
                "redis.connection",
                keyspace.describe(&failure),
                advice,
            )];
        }
    };
    let mut findings = vec![Finding::ok("redis.connection", endpoint.to_string())];
    let inspections: [(&'static str, BoxFuture<'_, Inspected>); 5] = [
        ("redis.mode", Box::pin(inspect_mode(connection.clone()))),
        (
            "redis.permissions",
            Box::pin(inspect_permissions(connection.clone(), &keyspace)),
        ),
        (
            "redis.index",
            Box::pin(inspect_index(connection.clone(), &keyspace)),
        ),
        (
            "redis.persistence",
            Box::pin(inspect_persistence(connection.clone())),
        ),
        ("redis.eviction", Box::pin(inspect_eviction(connection))),
    ];
    for (subject, inspection) in inspections {
        match inspection.await {
            Ok(finding) => findings.push(finding),
            Err(failure) => {
                let advice = "see \"Users of Redis\" and \"What happens when Redis …\" in docs/operations/redis.md";
                findings.push(Finding::error(subject, keyspace.describe(&failure), advice));
                if failure.is_disconnection() || matches!(failure, RedisFailure::Timeout) {
                    break;
                }
            }
        }
    }
    findings
}

async fn inspect_mode(mut connection: Connection) -> Inspected {
    let mut hello: HashMap<String, Value> =
        cmd("HELLO").arg(3).query_async(&mut connection).await?;
    let mode: String = hello
        .remove("mode")
        .and_then(|mode| from_redis_value(mode).ok())
        .unwrap_or_default();
    Ok(match &*mode {
        "standalone" => Finding::ok("redis.mode", "standalone, master"),
        _ => Finding::error(
            "redis.mode",
            mode,
            "use one Redis server, or Sentinel: Cluster is not supported",
        ),
    })
}

async fn inspect_permissions(mut connection: Connection, keyspace: &Keyspace) -> Inspected {
    tracking_command(keyspace)
        .exec_async(&mut connection)
        .await?;
    token::find(connection, &keyspace.token(&ApiKeyDigest([0; 32]))).await?;
    Ok(Finding::ok(
        "redis.permissions",
        "API keys can be looked up, and revoked keys are reported at once",
    ))
}

async fn inspect_index(mut connection: Connection, keyspace: &Keyspace) -> Inspected {
    if cmd("EXISTS")
        .arg(&keyspace.index)
        .query_async(&mut connection)
        .await?
    {
        return Ok(Finding::ok("redis.index", keyspace.index.as_str()));
    }
    let advice = "create a key with `animal-store keys create` as a user of Redis who may (keys.redis.admin_url); if \
                  there were keys, check keys.redis.prefix, the database in keys.redis.url, and whether Redis has lost \
                  its data";
    Ok(Finding::warning(
        "redis.index",
        format!("{} does not exist: every request gets 401", keyspace.index),
        advice,
    ))
}

async fn inspect_persistence(mut connection: Connection) -> Inspected {
    let (subject, advice) = (
        "redis.persistence",
        "set appendonly yes and appendfsync always",
    );
    let append_only = setting(&mut connection, "appendonly", "aof_enabled").await?;
    let fsync = setting(&mut connection, "appendfsync", "").await?;
    let save = setting(&mut connection, "save", "").await?;
    Ok(
        match (append_only.as_deref(), fsync.as_deref(), save.as_deref()) {
            (None, ..) => hidden(subject, advice),
            (Some("yes" | "1"), Some("always"), _) => {
                Finding::ok(subject, "appendonly yes, appendfsync always")
            }
            (Some("yes" | "1"), None, _) => {
                Finding::ok(subject, "appendonly yes; appendfsync is hidden")
            }
            (Some("yes" | "1"), ..) => {
                Finding::warning(subject, "a crash can undo the last revocations", advice)
            }
            (.., Some("")) => Finding::error(subject, "a restart loses all API keys", advice),
            _ => Finding::warning(
                subject,
                "a crash undoes the changes since the last snapshot",
                advice,
            ),
        },
    )
}

async fn inspect_eviction(mut connection: Connection) -> Inspected {
    let (subject, advice) = ("redis.eviction", "set maxmemory-policy noeviction");
    let limit = setting(&mut connection, "maxmemory", "maxmemory").await?;
    let policy = setting(&mut connection, "maxmemory-policy", "maxmemory_policy").await?;
    Ok(match (limit.as_deref(), policy.as_deref()) {
        (None, _) | (_, None) => hidden(subject, advice),
        (Some("0"), _) | (_, Some("noeviction")) => Finding::ok(subject, "nothing is evicted"),
        (_, Some(policy)) => Finding::error(
            subject,
            format!("{policy}: Redis can evict API keys"),
            advice,
        ),
    })
}

fn hidden(subject: &'static str, advice: &str) -> Finding {
    Finding::unknown(
        subject,
        "neither CONFIG GET nor INFO is permitted",
        format!("as an administrator: {advice}"),
    )
}

/// Returns a setting, or `None` if it is hidden. `INFO` has some of the settings, by other names.
async fn setting(
    connection: &mut Connection,
    name: &str,
    in_info: &str,
) -> RedisResult<Option<String>> {
    let config = cmd("CONFIG")
        .arg("GET")
        .arg(name)
        .query_async(connection)
        .await;
    let mut setting = config.map(|mut config: HashMap<String, String>| config.remove(name));
    if setting.as_ref().is_err_and(|error| error.code().is_some()) {
        setting = cmd("INFO")
            .query_async(connection)
            .await
            .map(|info: InfoDict| info.get(in_info));
    }
    setting.or_else(|error| {
        if error.code().is_some() {
            Ok(None)
        } else {
            Err(error)
        }
    })
}
