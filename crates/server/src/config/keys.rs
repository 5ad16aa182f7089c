//! The keys of the API keys.

use std::{fmt, time::Duration};

use animal_store_adapters_redis::{RedisEndpoint, RedisEndpointError, RedisSettings, RedisTls};
use animal_store_app::ApiToken;
use secrecy::SecretString;

use super::{
    declaration::keys,
    parsers::{duration, number, one_of, optional},
    storage::{SqliteConfig, StorageBackend, StorageKeys},
    values::Values,
};

#[derive(Debug)]
pub(crate) enum KeysConfig {
    Sqlite(SqliteConfig),
    Memory { tokens: Vec<SecretString> },
    Redis(Box<RedisKeysConfig>),
}

#[derive(Debug)]
pub(crate) struct RedisKeysConfig {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) directory: RedisSettings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Redis,
}

const BACKENDS: [(&str, Backend); 3] =
    [("sqlite", Backend::Sqlite), ("memory", Backend::Memory), ("redis", Backend::Redis)];
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const LEASE: std::ops::RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_mins(1);

impl KeysConfig {
    /// Returns `None` if a required value is missing, which is an error.
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let storage = StorageKeys::read(values);
        keys! { values,
            /// Source of the API keys: `sqlite` or `redis`, which `animal-store keys` administers, or `memory`, the
            /// tokens of `keys.memory.tokens`. Empty: `memory` if there are tokens, otherwise as `storage.backend`.
            /// With `storage.backend = "postgres"`, `redis` or tokens are required: each instance would have a file of
            /// its own.
            backend = value("keys.backend", "", optional(one_of(&BACKENDS)));
            /// Tokens of the API keys: a list, or a text with commas. Required by the backend `memory`, unless
            /// `http.listen` is a loopback address: one is then generated, and printed on a terminal or with
            /// `--print-key`.
            tokens = secrets("keys.memory.tokens");
        }
        for (token, number) in tokens.iter().zip(1..) {
            if let Err(error) = ApiToken::parse(token.clone()) {
                let error = format!("contains an invalid token, number {number}: {error}");
                values.add_error("keys.memory.tokens", &error);
            }
        }
        let backend = backend.or_else(|| implied(values, storage.backend, !tokens.is_empty()));
        let redis = RedisKeysConfig::read(values, backend == Some(Backend::Redis));
        values.require(
            backend != Some(Backend::Sqlite) || storage.backend != StorageBackend::Postgres,
            &["keys.backend", "storage.backend"],
            "must not be sqlite if storage.backend is postgres, because each instance would have a file of its own: \
             set it to redis, or set keys.memory.tokens",
        );
        Some(match backend? {
            Backend::Sqlite => Self::Sqlite(storage.sqlite),
            Backend::Memory => Self::Memory { tokens },
            Backend::Redis => Self::Redis(Box::new(redis?)),
        })
    }

    /// Reads what a command uses, which waits for Redis for longer than a request does.
    pub(crate) fn read_for_command(values: &mut Values) -> Option<Self> {
        let mut keys = Self::read(values)?;
        if let Self::Redis(redis) = &mut keys {
            redis.directory.timeout = COMMAND_TIMEOUT;
        }
        Some(keys)
    }
}

/// The backend, and where it keeps the API keys.
impl fmt::Display for KeysConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(sqlite) => write!(formatter, "sqlite {}", sqlite.path.display()),
            Self::Memory { .. } => formatter.write_str("memory"),
            Self::Redis(redis) => write!(formatter, "redis {}", redis.endpoint),
        }
    }
}

/// Returns the backend that other values imply, and shows it as the value of the key. `None`: it is required.
fn implied(values: &mut Values, storage: StorageBackend, has_tokens: bool) -> Option<Backend> {
    let (backend, name) = match storage {
        _ if has_tokens => (Backend::Memory, "memory"),
        StorageBackend::Sqlite => (Backend::Sqlite, "sqlite"),
        StorageBackend::Memory => (Backend::Memory, "memory"),
        StorageBackend::Postgres => {
            let rule = "is required if storage.backend is postgres: set it to redis, or set keys.memory.tokens";
            values.require(false, &["keys.backend", "keys.memory.tokens", "storage.backend"], rule);
            return None;
        }
    };
    values.imply("keys.backend", name, if has_tokens { "keys.memory.tokens" } else { "storage.backend" });
    Some(backend)
}

impl RedisKeysConfig {
    /// `selected`: whether the values that the backend requires must be set.
    fn read(values: &mut Values, selected: bool) -> Option<Self> {
        keys! { values,
            /// `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, or
            /// `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.
            url = secret("keys.redis.url");
            /// PEM file with the certificate authorities of Redis. Empty: those of the system.
            authority = file("keys.redis.tls_ca_file");
            /// PEM file with the client certificate, if Redis requires one.
            certificate = file("keys.redis.tls_cert_file");
            /// PEM file with the private key of the client certificate.
            private_key = file("keys.redis.tls_key_file");
            /// Prefix of every name in Redis.
            prefix = value("keys.redis.prefix", "animal-store:", prefix);
            /// Longest time for which cached API keys, revoked ones too, are accepted while Redis does not respond.
            /// Redis is probed twice in this time.
            lease = value("keys.redis.lease", "600ms", duration(LEASE));
            /// Maximum number of cached tokens of API keys, and of keys whose uses are not written yet.
            max_known = value("keys.redis.max_known", "10000", number(1..=10_000_000));
        }
        values.require(url.is_some() || !selected, &["keys.redis.url"], "is required if keys.backend is redis");
        values.require(
            certificate.is_some() == private_key.is_some(),
            &["keys.redis.tls_cert_file", "keys.redis.tls_key_file"],
            "and keys.redis.tls_key_file must be set together",
        );
        let tls = RedisTls { authority, client: certificate.zip(private_key.map(SecretString::from)) };
        let endpoint = match url {
            Some(url) => RedisEndpoint::parse(&url, tls).map(Some),
            None => tls.check().map(|()| None),
        };
        let endpoint = endpoint.unwrap_or_else(|error| {
            let name = match error {
                RedisEndpointError::Authority(_) => "keys.redis.tls_ca_file",
                RedisEndpointError::Certificate(_) => "keys.redis.tls_cert_file",
                RedisEndpointError::PrivateKey(_) => "keys.redis.tls_key_file",
                _ => "keys.redis.url",
            };
            values.add_error(name, &error.to_string());
            None
        });
        let directory = RedisSettings { prefix, lease, max_known, ..RedisSettings::default() };
        Some(Self { endpoint: endpoint?, directory })
    }
}

fn prefix(prefix: &str) -> Result<String, String> {
    let valid = (1..=100).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(prefix.to_owned()) } else { Err("1 to 100 visible ASCII characters".to_owned()) }
}
