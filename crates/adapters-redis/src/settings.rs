use std::time::Duration;

use animal_store_adapter_kit::ApiKeyUseRecord;

/// Settings of a [`RedisApiKeyDirectory`](crate::RedisApiKeyDirectory) and of
/// [`RedisApiKeyUses`](crate::RedisApiKeyUses).
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// Prefix of every name in Redis.
    pub prefix: String,
    /// Timeout for opening a connection, and for each response. After a session with Redis ends, lookups wait for the
    /// next one until this time has passed.
    pub timeout: Duration,
    /// How long cached entries are valid after the last confirmed heartbeat was sent.
    pub lease: Duration,
    /// Maximum number of cached tokens that belong to a key, and of keys with uses that are not written yet.
    pub max_known: usize,
    /// Maximum number of cached tokens that belong to no key.
    pub max_unknown: usize,
    /// Maximum number of concurrent lookups.
    pub max_lookups: usize,
    /// Time between two writes of uses.
    pub use_interval: Duration,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            prefix: "animal-store:".to_owned(),
            timeout: Duration::from_millis(500),
            lease: Duration::from_millis(600),
            max_known: 10_000,
            max_unknown: 10_000,
            max_lookups: 1000,
            use_interval: ApiKeyUseRecord::INTERVAL,
        }
    }
}
