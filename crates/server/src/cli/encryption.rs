//! Whether connections to stores on other machines are encrypted, for the start and for `doctor`.

use animal_store_app::Finding;

use crate::config::{KeysConfig, StorageConfig};

const EXPOSED: &str = "machines on the way can read and change what is sent: the connection to another machine does \
                       not require TLS with a certificate that is checked";

/// Returns a finding about each store whose connections others can read.
pub(super) fn examine(storage: &StorageConfig, keys: &KeysConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let StorageConfig::Postgres(postgres) = storage
        && (postgres.endpoint.is_exposed() || postgres.migrate_endpoint.is_exposed())
    {
        let advice = "set sslmode=verify-full in the URLs of storage.postgres";
        findings.push(Finding::warning("postgres.encryption", EXPOSED, advice));
    }
    if let KeysConfig::Redis(redis) = keys
        && (redis.endpoint.is_exposed() || redis.administration().is_exposed())
    {
        let advice = "use rediss:// in the URLs of keys.redis";
        findings.push(Finding::warning("redis.encryption", EXPOSED, advice));
    }
    findings
}
