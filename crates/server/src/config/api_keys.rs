//! The settings of the API keys.

use std::{net::SocketAddr, ops::RangeInclusive, time::Duration};

use animal_store_adapters_redis::{
    RedisClientCertificate, RedisEndpoint, RedisEndpointError, RedisSettings, RedisTls,
};
use animal_store_app::ApiToken;
use animal_store_settings::{
    Setting, Values, items,
    parsers::{duration, number, one_of, optional, valid},
};
use secrecy::{ExposeSecret, SecretString};

use super::storage::{PostgresConfig, SqliteConfig, StorageBackend};

/// The source of API keys.
#[derive(Debug)]
pub(crate) enum ApiKeysConfig {
    Sqlite(SqliteConfig),
    Memory(MemoryApiKeysConfig),
    Postgres(Box<PostgresConfig>),
    Redis(Box<RedisConfig>),
}

/// API keys that are part of the configuration.
#[derive(Debug)]
pub(crate) struct MemoryApiKeysConfig {
    pub(crate) tokens: Vec<SecretString>,
}

#[derive(Debug)]
pub(crate) struct RedisConfig {
    pub(crate) endpoint: RedisEndpoint,
    /// How `keys`, `copy` and `backup` connect, if it differs.
    pub(crate) admin_endpoint: Option<RedisEndpoint>,
    /// Number of replicas that must confirm a change of a command.
    pub(crate) wait_replicas: u8,
    pub(crate) directory: RedisSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Postgres,
    Redis,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        BACKEND,
        "",
        "Source of the API keys: `sqlite`, `postgres` or `redis`, which `animal-store keys` administers, or `memory`, \
         the tokens of `keys.memory.tokens`. Empty: `memory` if there are tokens, otherwise as `storage.backend`. \
         `postgres` is the database of the pets; with pets in it, `sqlite` is refused, because each instance would \
         have a file of its own.",
    ),
    Setting::secret(
        TOKENS,
        "Tokens of the API keys: a list, or a text with commas. Required by the backend `memory`, unless \
         `http.listen` is a loopback address: one is then generated, and printed on a terminal or with `--print-key`.",
    ),
    Setting::secret(
        URL,
        "`redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, \
         `redis+sentinel://[user:password@]host[:port],…/service[/database]`, or \
         `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.",
    ),
    Setting::secret(
        ADMIN_URL,
        "URL for `keys`, `copy` and `backup`, if it differs: one of a user that may change keys.",
    ),
    Setting::new(
        "keys.redis.wait_replicas",
        "0",
        "Number of replicas that must confirm a change of a command. With fewer, the change is kept and the exit code \
         is 1: a fail-over can lose it.",
    ),
    Setting::new(
        AUTHORITY,
        "",
        "PEM file with the certificate authorities of Redis and its Sentinels. Empty: those of the system.",
    ),
    Setting::new(
        CERTIFICATE,
        "",
        "PEM file with the client certificate, if Redis requires one.",
    ),
    Setting::new(
        PRIVATE_KEY,
        "",
        "PEM file with the private key of the client certificate.",
    ),
    Setting::new(
        "keys.redis.prefix",
        "animal-store:",
        "Prefix of every name in Redis.",
    ),
    Setting::new(
        "keys.redis.lease",
        "600ms",
        "Longest time for which cached API keys, revoked ones too, are accepted while Redis does not respond. Redis \
         is probed twice in this time.",
    ),
    Setting::new(
        "keys.redis.max_known",
        "10000",
        "Maximum number of cached tokens of API keys, and of keys whose uses are not written yet.",
    ),
];

const BACKEND: &str = "keys.backend";
const TOKENS: &str = "keys.memory.tokens";
const URL: &str = "keys.redis.url";
const ADMIN_URL: &str = "keys.redis.admin_url";
const AUTHORITY: &str = "keys.redis.tls_ca_file";
const CERTIFICATE: &str = "keys.redis.tls_cert_file";
const PRIVATE_KEY: &str = "keys.redis.tls_key_file";

const LEASE: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_mins(1);

impl ApiKeysConfig {
    /// Reads the section, with the secrets and the certificates, also those of a backend that is not selected. `None`
    /// is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let backend = read_backend(values);
        let tokens = read_tokens(values);
        let redis = RedisConfig::read(values);
        match backend {
            Backend::Sqlite => Some(Self::Sqlite(SqliteConfig::read(values))),
            Backend::Memory => Some(Self::Memory(MemoryApiKeysConfig { tokens })),
            Backend::Postgres => PostgresConfig::read(values)
                .map(Box::new)
                .map(Self::Postgres),
            Backend::Redis => redis.map(Box::new).map(Self::Redis),
        }
    }
}

/// Requires tokens in memory if other machines can connect.
pub(super) fn require_tokens(values: &mut Values, listen: SocketAddr) {
    let is_memory = values.text(BACKEND) == "memory";
    values.require(
        !is_memory || listen.ip().is_loopback() || values.is_set(TOKENS),
        &[TOKENS, BACKEND],
        "is required unless http.listen is a loopback address",
    );
}

/// Returns the backend that is set, or that the tokens or the storage imply.
fn read_backend(values: &mut Values) -> Backend {
    let storage = StorageBackend::selected(values);
    if values.text(BACKEND).is_empty() {
        if values.is_set(TOKENS) {
            values.set(BACKEND, "memory", TOKENS);
        } else {
            values.set(BACKEND, storage.name(), "storage.backend");
        }
    }
    let backends = one_of(&[
        ("sqlite", Backend::Sqlite),
        ("memory", Backend::Memory),
        ("postgres", Backend::Postgres),
        ("redis", Backend::Redis),
    ]);
    // It is empty only in place of an invalid one.
    let backend = values
        .get(BACKEND, optional(backends))
        .unwrap_or(Backend::Memory);
    let is_in_postgres = storage == StorageBackend::Postgres;
    values.require(
        backend != Backend::Sqlite || !is_in_postgres,
        &[BACKEND, "storage.backend"],
        "cannot be sqlite if storage.backend is postgres: each instance would have a file of its own",
    );
    values.require(
        backend != Backend::Postgres || is_in_postgres,
        &[BACKEND, "storage.backend"],
        "cannot be postgres unless storage.backend is postgres: API keys are in the database of the pets",
    );
    values.require(
        backend != Backend::Redis || values.is_set(URL),
        &[URL],
        "is required if keys.backend is redis",
    );
    backend
}

/// Returns the tokens: a list, or a text with commas or line ends.
fn read_tokens(values: &mut Values) -> Vec<SecretString> {
    let secret = values.secret(TOKENS).unwrap_or_default();
    let tokens: Vec<_> = items(secret.expose_secret())
        .map(SecretString::from)
        .collect();
    for (token, number) in tokens.iter().zip(1..) {
        let parsed = ApiToken::parse(token.clone())
            .map_err(|error| format!("contains an invalid token, number {number}: {error}"));
        values.check(TOKENS, parsed);
    }
    tokens
}

impl RedisConfig {
    /// Returns how to connect to Redis. `None`: it has no URL, or there is an error.
    fn read(values: &mut Values) -> Option<Self> {
        let prefix = valid("1 to 100 visible ASCII characters", |prefix: &String| {
            let is_short = (1..=100).contains(&prefix.len());
            is_short && prefix.bytes().all(|byte| byte.is_ascii_graphic())
        });
        let wait_replicas = values.get("keys.redis.wait_replicas", number(0..=16));
        let directory = RedisSettings {
            prefix: values.get("keys.redis.prefix", prefix),
            lease: values.get("keys.redis.lease", duration(LEASE)),
            max_known: values.get("keys.redis.max_known", number(1..=10_000_000)),
            ..RedisSettings::default()
        };
        let tls = read_tls(values)?;
        let endpoint = read_endpoint(values, URL, &tls);
        let admin_endpoint = read_endpoint(values, ADMIN_URL, &tls);
        Some(Self {
            endpoint: endpoint?,
            admin_endpoint,
            wait_replicas,
            directory,
        })
    }

    /// Returns how commands connect.
    pub(crate) fn administration(&self) -> &RedisEndpoint {
        self.admin_endpoint.as_ref().unwrap_or(&self.endpoint)
    }
}

/// Reads the certificates. They are checked also if there is no URL to use them with.
fn read_tls(values: &mut Values) -> Option<RedisTls> {
    values.require(
        values.is_set(CERTIFICATE) == values.is_set(PRIVATE_KEY),
        &[CERTIFICATE, PRIVATE_KEY],
        "and keys.redis.tls_key_file must be set together",
    );
    let authority = values.file(AUTHORITY, false);
    let certificate = values.file(CERTIFICATE, false);
    let private_key = values.file(PRIVATE_KEY, true);
    let mut tls = RedisTls {
        authority,
        client: None,
    };
    if let Some(certificate) = certificate
        && let Some(private_key) = private_key
    {
        tls.client = Some(RedisClientCertificate {
            certificate,
            private_key: private_key.into(),
        });
    }
    check_endpoint(values, URL, tls.check())?;
    Some(tls)
}

fn read_endpoint(values: &mut Values, name: &str, tls: &RedisTls) -> Option<RedisEndpoint> {
    let url = values.secret(name)?;
    check_endpoint(values, name, RedisEndpoint::parse(&url, tls.clone()))
}

/// Returns what was opened, or adds the error about the URL, or about the file that the error is about.
fn check_endpoint<T>(
    values: &mut Values,
    url: &str,
    opened: Result<T, RedisEndpointError>,
) -> Option<T> {
    let name = match opened {
        Err(RedisEndpointError::Authority(_)) => AUTHORITY,
        Err(RedisEndpointError::Certificate(_)) => CERTIFICATE,
        Err(RedisEndpointError::PrivateKey(_)) => PRIVATE_KEY,
        _ => url,
    };
    values.check(name, opened)
}
