use std::time::Duration;

use animal_store_adapters_redis::{RedisEndpoint, RedisSettings, RedisTls};
use secrecy::SecretString;

use crate::config::{
    Key,
    values::{Values, duration, number},
};

pub(super) const URL: Key = Key::secret(
    "keys.redis.url",
    "`redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, or \
     `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.",
);
pub(super) const TLS_CA_FILE: Key = Key::new(
    "keys.redis.tls_ca_file",
    "",
    "A PEM file with the authorities that may have signed Redis' certificate; those of the system where it is empty.",
);
pub(super) const TLS_CERT_FILE: Key =
    Key::new("keys.redis.tls_cert_file", "", "A PEM file with our certificate, where Redis asks clients for one.");
pub(super) const TLS_KEY_FILE: Key =
    Key::new("keys.redis.tls_key_file", "", "A PEM file with the private key of that certificate.");
pub(super) const PREFIX: Key =
    Key::new("keys.redis.prefix", "animal-store:", "What every name in Redis begins with. It is never empty.");
pub(super) const TIMEOUT: Key =
    Key::new("keys.redis.timeout", "500ms", "For opening a connection to Redis, and for each answer of it.");
pub(super) const LEASE: Key = Key::new(
    "keys.redis.lease",
    "600ms",
    "How long a cached API key counts after the last sign of life from Redis: the longest time that a revoked one can \
     pass while Redis cannot be reached. Twice in that time, Redis is asked for another.",
);
pub(super) const MAX_KNOWN: Key =
    Key::new("keys.redis.max_known", "10000", "Tokens of API keys that are cached at most.");
pub(super) const MAX_UNKNOWN: Key =
    Key::new("keys.redis.max_unknown", "10000", "Tokens that belong to no API key that are cached at most.");
pub(super) const MAX_LOOK_UPS: Key = Key::new(
    "keys.redis.max_look_ups",
    "1000",
    "Tokens that Redis is asked for at a time. Requests with others are answered 503 `overloaded` at once.",
);

/// API keys in Redis.
#[derive(Debug)]
pub struct RedisKeysConfig {
    /// The server.
    pub endpoint: RedisEndpoint,
    /// How they are looked up.
    pub directory: RedisSettings,
}

impl RedisKeysConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let endpoint = endpoint(values);
        let prefix = values.read(&PREFIX, prefix);
        let timeout = values.read(&TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_secs(10)));
        let lease = values.read(&LEASE, duration(Duration::from_millis(50)..=Duration::from_mins(1)));
        let max_known = values.read(&MAX_KNOWN, number(1..=10_000_000));
        let max_unknown = values.read(&MAX_UNKNOWN, number(1..=10_000_000));
        let max_look_ups = values.read(&MAX_LOOK_UPS, number(1..=100_000));
        Some(Self {
            endpoint: endpoint?,
            directory: RedisSettings {
                prefix: prefix?,
                timeout: timeout?,
                lease: lease?,
                max_known: max_known?,
                max_unknown: max_unknown?,
                max_lookups: max_look_ups?,
            },
        })
    }
}

fn endpoint(values: &mut Values) -> Option<RedisEndpoint> {
    let url = values.read_secret(&URL);
    let [authority, certificate, key] =
        [&TLS_CA_FILE, &TLS_CERT_FILE, &TLS_KEY_FILE].map(|file| values.read_file(file));
    let client = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, SecretString::from(key))),
        (None, None) => None,
        _ => {
            values.problem(&TLS_CERT_FILE, "and keys.redis.tls_key_file must be given together");
            return None;
        }
    };
    let Some(url) = url else {
        values.problem(&URL, "is required where keys.backend is redis");
        return None;
    };
    RedisEndpoint::parse(&url, RedisTls { authority, client })
        .map_err(|error| values.problem(&URL, &error.to_string()))
        .ok()
}

fn prefix(prefix: &str) -> Result<String, String> {
    let good = (1..=100).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if good { Ok(prefix.to_owned()) } else { Err("1 to 100 visible ASCII characters".to_owned()) }
}
