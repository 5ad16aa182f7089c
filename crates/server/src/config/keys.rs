//! The keys of the API keys.

use std::{fmt, time::Duration};

use animal_store_adapters_redis::{RedisEndpoint, RedisEndpointError, RedisSettings, RedisTls};
use animal_store_app::ApiToken;
use secrecy::SecretString;

use super::{
    declaration::{duration, keys, number, one_of, optional, parsed},
    storage::{PostgresConfig, SqliteConfig, StorageBackend, read_common},
    values::Values,
};

#[derive(Debug)]
pub(crate) enum KeysConfig {
    Sqlite(SqliteConfig),
    Memory { tokens: Vec<SecretString> },
    Postgres(Box<PostgresConfig>),
    Redis(Box<RedisKeysConfig>),
}

#[derive(Debug)]
pub(crate) struct RedisKeysConfig {
    pub(crate) endpoint: RedisEndpoint,
    /// How `keys`, `copy` and `backup` connect, if it differs.
    pub(crate) admin_endpoint: Option<RedisEndpoint>,
    /// Number of replicas that must confirm a change of a command.
    pub(crate) wait_replicas: u8,
    pub(crate) directory: RedisSettings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Postgres,
    Redis,
}

const LEASE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_mins(1);

impl KeysConfig {
    /// Returns `None` if a required value is missing, which is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let (storage, sqlite) = read_common(values);
        let backends = one_of([
            ("sqlite", Backend::Sqlite),
            ("memory", Backend::Memory),
            ("postgres", Backend::Postgres),
            ("redis", Backend::Redis),
        ]);
        keys! { values,
            /// Source of the API keys: `sqlite`, `postgres` or `redis`, which `animal-store keys` administers, or
            /// `memory`, the tokens of `keys.memory.tokens`. Empty: `memory` if there are tokens, otherwise as
            /// `storage.backend`. `postgres` is the database of the pets; with pets in it, `sqlite` is refused, because
            /// each instance would have a file of its own.
            backend = value("keys.backend", "", optional(backends));
            /// Tokens of the API keys: a list, or a text with commas. Required by the backend `memory`, unless
            /// `http.listen` is a loopback address: one is then generated, and printed on a terminal or with
            /// `--print-key`.
            tokens = secrets("keys.memory.tokens");
        }
        for (token, number) in tokens.iter().zip(1..) {
            let parsed = ApiToken::parse(token.clone());
            let parsed = parsed
                .map_err(|error| format!("contains an invalid token, number {number}: {error}"));
            values.checked("keys.memory.tokens", parsed);
        }
        let (implied, name, reason) = match storage {
            _ if !tokens.is_empty() => (Backend::Memory, "memory", "keys.memory.tokens"),
            StorageBackend::Memory => (Backend::Memory, "memory", "storage.backend"),
            StorageBackend::Sqlite => (Backend::Sqlite, "sqlite", "storage.backend"),
            StorageBackend::Postgres => (Backend::Postgres, "postgres", "storage.backend"),
        };
        if backend.is_none() {
            values.imply("keys.backend", name, reason);
        }
        let backend = backend.unwrap_or(implied);
        let stores = ["keys.backend", "storage.backend"];
        values.require(
            backend != Backend::Sqlite || storage != StorageBackend::Postgres,
            &stores,
            "cannot be sqlite if storage.backend is postgres: each instance would have a file of its own",
        );
        values.require(
            backend != Backend::Postgres || storage == StorageBackend::Postgres,
            &stores,
            "cannot be postgres unless storage.backend is postgres: API keys are in the database of the pets",
        );
        let retention = sqlite.settings.idempotency_retention;
        let is_database = backend == Backend::Postgres && storage == StorageBackend::Postgres;
        let postgres = is_database.then(|| PostgresConfig::read(values, retention, true));
        let redis = RedisKeysConfig::read(values, backend == Backend::Redis);
        Some(match backend {
            Backend::Sqlite => Self::Sqlite(sqlite),
            Backend::Memory => Self::Memory { tokens },
            Backend::Postgres => Self::Postgres(Box::new(postgres??)),
            Backend::Redis => Self::Redis(Box::new(redis?)),
        })
    }
}

/// The backend, and where it keeps the API keys.
impl fmt::Display for KeysConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(sqlite) => write!(formatter, "sqlite {}", sqlite.path.display()),
            Self::Memory { .. } => formatter.write_str("memory"),
            Self::Postgres(postgres) => write!(formatter, "postgres {}", postgres.endpoint),
            Self::Redis(redis) => write!(formatter, "redis {}", redis.endpoint),
        }
    }
}

impl KeysConfig {
    /// Returns the backend, and where commands change the API keys.
    pub(crate) fn administered(&self) -> String {
        match self {
            Self::Postgres(postgres) => format!("postgres {}", postgres.migrate_endpoint),
            Self::Redis(redis) => format!("redis {}", redis.administration()),
            Self::Sqlite(_) | Self::Memory { .. } => self.to_string(),
        }
    }
}

impl RedisKeysConfig {
    /// Returns how commands connect.
    pub(crate) fn administration(&self) -> &RedisEndpoint {
        self.admin_endpoint.as_ref().unwrap_or(&self.endpoint)
    }

    /// `selected`: whether the values that the backend requires must be set.
    fn read(values: &mut Values, selected: bool) -> Option<Self> {
        let is_visible = |prefix: &String| {
            (1..=100).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let prefix = parsed("1 to 100 visible ASCII characters", is_visible);
        keys! { values,
            /// `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS,
            /// `redis+sentinel://[user:password@]host[:port],…/service[/database]`, or
            /// `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.
            url = secret("keys.redis.url");
            /// URL for `keys`, `copy` and `backup`, if it differs: one of a user that may change keys.
            admin_url = secret("keys.redis.admin_url");
            /// Number of replicas that must confirm a change of a command. With fewer, the change is kept and the exit
            /// code is 1: a fail-over can lose it.
            wait_replicas = value("keys.redis.wait_replicas", "0", number(0..=16));
            /// PEM file with the certificate authorities of Redis and its Sentinels. Empty: those of the system.
            authority = file("keys.redis.tls_ca_file");
            /// PEM file with the client certificate, if Redis requires one.
            certificate = file("keys.redis.tls_cert_file");
            /// PEM file with the private key of the client certificate.
            private_key = key_file("keys.redis.tls_key_file");
            /// Prefix of every name in Redis.
            prefix = value("keys.redis.prefix", "animal-store:", prefix);
            /// Longest time for which cached API keys, revoked ones too, are accepted while Redis does not respond.
            /// Redis is probed twice in this time.
            lease = value("keys.redis.lease", "600ms", duration(LEASE));
            /// Maximum number of cached tokens of API keys, and of keys whose uses are not written yet.
            max_known = value("keys.redis.max_known", "10000", number(1..=10_000_000));
        }
        values.require(
            url.is_some() || !selected,
            &["keys.redis.url"],
            "is required if keys.backend is redis",
        );
        values.require(
            certificate.is_some() == private_key.is_some(),
            &["keys.redis.tls_cert_file", "keys.redis.tls_key_file"],
            "and keys.redis.tls_key_file must be set together",
        );
        let tls = RedisTls {
            authority,
            client: certificate.zip(private_key),
        };
        let endpoint = read_endpoint(values, "keys.redis.url", url, &tls);
        let admin_endpoint = read_endpoint(values, "keys.redis.admin_url", admin_url, &tls);
        let directory = RedisSettings {
            prefix,
            lease,
            max_known,
            ..RedisSettings::default()
        };
        Some(Self {
            endpoint: endpoint?,
            admin_endpoint,
            wait_replicas,
            directory,
        })
    }
}

/// Reads an endpoint, whose certificates are checked also without a URL. `None`: there is no URL, or an error.
fn read_endpoint(
    values: &mut Values,
    url_key: &'static str,
    url: Option<SecretString>,
    tls: &RedisTls,
) -> Option<RedisEndpoint> {
    let endpoint = match url {
        Some(url) => RedisEndpoint::parse(&url, tls.clone()).map(Some),
        None => tls.check().map(|()| None),
    };
    let name = match endpoint {
        Err(RedisEndpointError::Authority(_)) => "keys.redis.tls_ca_file",
        Err(RedisEndpointError::Certificate(_)) => "keys.redis.tls_cert_file",
        Err(RedisEndpointError::PrivateKey(_)) => "keys.redis.tls_key_file",
        _ => url_key,
    };
    values.checked(name, endpoint)?
}
