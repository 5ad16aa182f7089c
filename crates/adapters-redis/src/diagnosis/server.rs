use std::collections::HashMap;

use animal_store_app::Finding;
use redis::{Value, cmd, from_redis_value};

use super::Inspected;
use crate::connection::Connection;

/// The version of the tests.
const TESTED_VERSION: u32 = 7;

/// Every user may execute `HELLO`. A server before version 6 refuses the connection.
pub(super) async fn inspect(mut connection: Connection) -> Inspected {
    let mut hello: HashMap<String, Value> = cmd("HELLO").arg(3).query_async(&mut connection).await?;
    let mut text = |name: &str| hello.remove(name).and_then(|value| from_redis_value(value).ok()).unwrap_or_default();
    let [version, mode, role]: [String; 3] = ["version", "mode", "role"].map(&mut text);
    Ok(vec![version_finding(&version), mode_finding(&mode, &role)])
}

fn version_finding(version: &str) -> Finding {
    let subject = "redis.version";
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    if major.is_some_and(|major: u32| major < TESTED_VERSION) {
        return Finding::warning(subject, version, "upgrade: the service is tested with 7.0");
    }
    Finding::ok(subject, version)
}

fn mode_finding(mode: &str, role: &str) -> Finding {
    let subject = "redis.mode";
    let found = format!("{mode}, {role}");
    if mode != "standalone" {
        return Finding::error(subject, found, "use one Redis server: Cluster and Sentinel are not supported");
    }
    if role != "master" {
        let advice = "connect to the master: keys cannot be changed here, and revocations arrive after replication";
        return Finding::warning(subject, found, advice);
    }
    Finding::ok(subject, found)
}

#[cfg(test)]
mod tests {
    use animal_store_app::Verdict::{Error, Ok, Warning};

    use super::*;

    #[test]
    fn a_version_before_7_is_a_warning() {
        assert_eq!(["6.2.14", "7.0.15", "8.0.0"].map(|version| version_finding(version).verdict), [Warning, Ok, Ok]);
    }

    #[test]
    fn a_cluster_is_an_error_and_a_replica_a_warning() {
        let modes = [("standalone", "master"), ("standalone", "replica"), ("cluster", "master")];
        assert_eq!(modes.map(|(mode, role)| mode_finding(mode, role).verdict), [Ok, Warning, Error]);
    }
}
