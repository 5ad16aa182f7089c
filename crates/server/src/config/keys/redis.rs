use std::time::Duration;

use animal_store_adapters_redis::{RedisEndpoint, RedisEndpointError, RedisSettings, RedisTls};
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
    MAX_KNOWN: new("keys.redis.max_known", "10000",
        "Maximum number of cached tokens that belong to an API key, and of keys whose uses are not written yet.");
    MAX_UNKNOWN: new("keys.redis.max_unknown", "10000", "Maximum number of cached tokens that belong to no API key.");
    MAX_LOOK_UPS: new("keys.redis.max_look_ups", "1000",
        "Maximum number of tokens that are looked up in Redis at a time. Requests with further tokens get 503 \
         `overloaded` at once.");
}

/// Time between two writes of the uses of API keys.
const USE_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct RedisKeysConfig {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) directory: RedisSettings,
}

impl RedisKeysConfig {
    /// `selected`: whether the values that the backend requires must be set.
    pub(super) fn read(values: &mut Values, selected: bool) -> Option<Self> {
        let endpoint = endpoint(values, selected);
        let directory = RedisSettings {
            prefix: values.read(&PREFIX, prefix),
            timeout: values.read(&TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_secs(10))),
            lease: values.read(&LEASE, duration(Duration::from_millis(50)..=Duration::from_mins(1))),
            max_known: values.read(&MAX_KNOWN, number(1..=10_000_000)),
            max_unknown: values.read(&MAX_UNKNOWN, number(1..=10_000_000)),
            max_lookups: values.read(&MAX_LOOK_UPS, number(1..=100_000)),
            use_interval: USE_INTERVAL,
        };
        Some(Self { endpoint: endpoint?, directory })
    }
}

/// Parses the URL, if it is set, and the certificates. Adds an error for what is not valid.
fn endpoint(values: &mut Values, selected: bool) -> Option<RedisEndpoint> {
    let url = values.read_secret(&URL);
    values.require(url.is_some() || !selected, &[&URL], "is required if keys.backend is redis");
    let [authority, certificate, key] =
        [&TLS_CA_FILE, &TLS_CERT_FILE, &TLS_KEY_FILE].map(|file| values.read_file(file));
    values.require(
        certificate.is_some() == key.is_some(),
        &[&TLS_CERT_FILE, &TLS_KEY_FILE],
        "and keys.redis.tls_key_file must be set together",
    );
    let tls = RedisTls { authority, client: certificate.zip(key.map(SecretString::from)) };
    let endpoint = match url {
        Some(url) => RedisEndpoint::parse(&url, tls).map(Some),
        None => tls.check().map(|()| None),
    };
    endpoint.unwrap_or_else(|error| {
        let key = match error {
            RedisEndpointError::Authority(_) => &TLS_CA_FILE,
            RedisEndpointError::Certificate(_) => &TLS_CERT_FILE,
            RedisEndpointError::PrivateKey(_) => &TLS_KEY_FILE,
            _ => &URL,
        };
        values.add_error(key, &error.to_string());
        None
    })
}

fn prefix(prefix: &str) -> Result<String, String> {
    let valid = (1..=100).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(prefix.to_owned()) } else { Err("1 to 100 visible ASCII characters".to_owned()) }
}
