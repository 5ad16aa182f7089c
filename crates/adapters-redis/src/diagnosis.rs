//! The part of `animal-store doctor` about Redis.
//!
//! **Problem.** A missing permission, an eviction policy or a slow network is found when requests get 503, or when a
//! revoked key is valid again.
//!
//! **Invariant.** The diagnosis changes nothing. It executes the commands of a session and of a lookup themselves. Each
//! response has a timeout. A subject that cannot be examined hides no other, unless the connection is lost.
//!
//! **Proof.** `tests/redis/diagnosis.rs` (each finding, nothing changed); `crates/server/tests/process/doctor.rs` (an
//! unavailable Redis, secrets).

mod lookups;
mod round_trip;
mod server;
mod storage;

use animal_store_app::Finding;
use futures_util::future::BoxFuture;

use crate::{
    connection::{Connection, RedisEndpoint},
    layout::Layout,
    lookup::LookupError,
    settings::RedisSettings,
};

/// The findings of a step, or the error because of which it has none.
type Inspected = Result<Vec<Finding>, LookupError>;

/// Examines a Redis server. The number of commands is fixed, and each has the timeout of the settings.
pub async fn diagnose(endpoint: &RedisEndpoint, settings: &RedisSettings) -> Vec<Finding> {
    let connection: Connection = match endpoint.connect(settings.timeout, |_| ()).await {
        Ok(connection) => connection,
        Err(error) => {
            let advice = "check keys.redis.url, and whether Redis runs and accepts the user";
            return vec![Finding::error("redis.connection", error.to_string(), advice)];
        }
    };
    let layout = Layout::new(&settings.prefix);
    let mut findings = vec![Finding::ok("redis.connection", endpoint.to_string())];
    let steps: [(&'static str, BoxFuture<'_, Inspected>); 6] = [
        ("redis.version", Box::pin(server::inspect(connection.clone()))),
        ("redis.tracking", Box::pin(lookups::inspect_tracking(connection.clone(), &layout))),
        ("redis.permissions", Box::pin(lookups::inspect_permissions(connection.clone(), &layout))),
        ("redis.index", Box::pin(lookups::inspect_index(connection.clone(), &layout))),
        ("redis.round_trip", Box::pin(round_trip::inspect(connection.clone(), settings.lease))),
        ("redis.persistence", Box::pin(storage::inspect(connection))),
    ];
    for (subject, step) in steps {
        match step.await {
            Ok(found) => findings.extend(found),
            Err(error) => {
                let advice = "requests get 503: see \"Users of Redis\" and \"What happens when Redis …\" in \
                              docs/operations.md";
                findings.push(Finding::error(subject, error.describe(endpoint, &layout), advice));
                if error.is_disconnection() || matches!(error, LookupError::Timeout) {
                    break;
                }
            }
        }
    }
    findings
}
