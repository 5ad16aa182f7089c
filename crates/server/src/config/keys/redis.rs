use std::time::Duration;

use animal_store_adapters_redis::{RedisEndpoint, RedisSettings, RedisTls};
use secrecy::SecretString;

use crate::config::{
    key::{Key, keys},
    values::{Values, duration, number},
};

keys! {
    URL: secret("keys.redis.url",
        "`redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, or \
         `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.");
    TLS_CA_FILE: new("keys.redis.tls_ca_file", "",
        "PEM file with the certificate authorities of Redis. Empty: those of the system.");
    TLS_CERT_FILE: new("keys.redis.tls_cert_file", "", "PEM file with the client certificate, if Redis requires one.");
    TLS_KEY_FILE: new("keys.redis.tls_key_file", "", "PEM file with the private key of the client certificate.");
    PREFIX: new("keys.redis.prefix", "animal-store:", "Prefix of every name in Redis. Must not be empty.");
    TIMEOUT: new("keys.redis.timeout", "500ms",
        "Timeout for opening a connection to Redis, and for each of its responses. After the connection is lost, \
         requests wait for the next one until this time has passed; from then on they get 503 at once.");
    LEASE: new("keys.redis.lease", "600ms",
        "Time for which cached API keys stay valid, counted from the sending of the last `PING` that Redis answered. \
         It is the longest time for which a revoked key is accepted while Redis is unavailable. Redis is probed twice \
         in this time.");
    MAX_KNOWN: new("keys.redis.max_known", "10000", "Maximum number of cached tokens that belong to an API key.");
    MAX_UNKNOWN: new("keys.redis.max_unknown", "10000", "Maximum number of cached tokens that belong to no API key.");
    MAX_LOOK_UPS: new("keys.redis.max_look_ups", "1000",
        "Maximum number of tokens that are looked up in Redis at a time. Requests with further tokens get 503 \
         `overloaded` at once.");
}

#[derive(Debug)]
pub(crate) struct RedisKeysConfig {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) directory: RedisSettings,
}

impl RedisKeysConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let endpoint = endpoint(values);
        let directory = RedisSettings {
            prefix: values.read(&PREFIX, prefix),
            timeout: values.read(&TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_secs(10))),
            lease: values.read(&LEASE, duration(Duration::from_millis(50)..=Duration::from_mins(1))),
            max_known: values.read(&MAX_KNOWN, number(1..=10_000_000)),
            max_unknown: values.read(&MAX_UNKNOWN, number(1..=10_000_000)),
            max_lookups: values.read(&MAX_LOOK_UPS, number(1..=100_000)),
        };
        Some(Self { endpoint: endpoint?, directory })
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
            values.add_error(&TLS_CERT_FILE, "and keys.redis.tls_key_file must be set together");
            return None;
        }
    };
    let Some(url) = url else {
        values.add_error(&URL, "is required if keys.backend is redis");
        return None;
    };
    RedisEndpoint::parse(&url, RedisTls { authority, client })
        .map_err(|error| values.add_error(&URL, &error.to_string()))
        .ok()
}

fn prefix(prefix: &str) -> Result<String, String> {
    let valid = (1..=100).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(prefix.to_owned()) } else { Err("1 to 100 visible ASCII characters".to_owned()) }
}
