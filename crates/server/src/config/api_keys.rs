//! The settings of the API keys.

use std::{fmt, ops::RangeInclusive, path::PathBuf, time::Duration};

use animal_store_adapters_redis::{RedisEndpoint, RedisEndpointError, RedisSettings, RedisTls};
use animal_store_app::ApiToken;
use animal_store_settings::{
    Setting, Values, items,
    parsers::{duration, number, one_of, optional, parsed, path},
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    files::Files,
    sections::Section,
    storage::{PostgresConfig, SqliteConfig, StorageBackend, StorageSection},
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Postgres,
    Redis,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "keys.backend",
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

const TOKENS: &str = "keys.memory.tokens";
const URL: &str = "keys.redis.url";
const ADMIN_URL: &str = "keys.redis.admin_url";
const AUTHORITY: &str = "keys.redis.tls_ca_file";
const CERTIFICATE: &str = "keys.redis.tls_cert_file";
const PRIVATE_KEY: &str = "keys.redis.tls_key_file";

const LEASE: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_mins(1);

/// The section `keys`.
#[derive(Debug, Clone)]
pub(super) struct ApiKeysSection {
    backend: Backend,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    private_key: Option<PathBuf>,
    wait_replicas: u8,
    redis: RedisSettings,
}

impl ApiKeysSection {
    pub(super) fn read(values: &mut Values, storage: StorageBackend) -> Self {
        let certificate = values.get(CERTIFICATE, optional(path));
        let private_key = values.get(PRIVATE_KEY, optional(path));
        values.require(
            certificate.is_some() == private_key.is_some(),
            &[CERTIFICATE, PRIVATE_KEY],
            "and keys.redis.tls_key_file must be set together",
        );
        let prefix = parsed("1 to 100 visible ASCII characters", |prefix: &String| {
            let is_short = (1..=100).contains(&prefix.len());
            is_short && prefix.bytes().all(|byte| byte.is_ascii_graphic())
        });
        Self {
            backend: read_backend(values, storage),
            authority: values.get(AUTHORITY, optional(path)),
            certificate,
            private_key,
            wait_replicas: values.get("keys.redis.wait_replicas", number(0..=16)),
            redis: RedisSettings {
                prefix: values.get("keys.redis.prefix", prefix),
                lease: values.get("keys.redis.lease", duration(LEASE)),
                max_known: values.get("keys.redis.max_known", number(1..=10_000_000)),
                ..RedisSettings::default()
            },
        }
    }

    /// Reads the secrets and the certificates, also those of a backend that is not selected.
    pub(super) fn open(
        &self,
        storage: &Section<StorageSection>,
        files: &mut Files,
    ) -> Section<KeysConfig> {
        let storage = match self.backend {
            Backend::Sqlite | Backend::Postgres => Some(storage.clone()?),
            Backend::Memory | Backend::Redis => None,
        };
        let tokens = open_tokens(files);
        let redis = self.open_redis(files);
        let opened = match self.backend {
            Backend::Sqlite => storage.map(|storage| KeysConfig::Sqlite(storage.sqlite)),
            Backend::Memory => Some(KeysConfig::Memory { tokens }),
            Backend::Postgres => storage
                .and_then(|storage| storage.open_postgres(files))
                .map(|postgres| KeysConfig::Postgres(Box::new(postgres))),
            Backend::Redis => redis.map(|redis| KeysConfig::Redis(Box::new(redis))),
        };
        files.finish(opened)
    }

    /// Returns how to connect to Redis. `None`: it has no URL, or there is an error.
    fn open_redis(&self, files: &mut Files) -> Option<RedisKeysConfig> {
        let authority = files.read(AUTHORITY, self.authority.as_deref(), false);
        let certificate = files.read(CERTIFICATE, self.certificate.as_deref(), false);
        let private_key = files.read(PRIVATE_KEY, self.private_key.as_deref(), true);
        let tls = RedisTls {
            authority,
            client: certificate.zip(private_key.map(SecretString::from)),
        };
        // Certificates are checked also if there is no URL to use them with.
        if let Err(error) = tls.check() {
            return check_endpoint(files, URL, Err(error));
        }
        let endpoint = open_endpoint(files, URL, &tls);
        let admin_endpoint = open_endpoint(files, ADMIN_URL, &tls);
        Some(RedisKeysConfig {
            endpoint: endpoint?,
            admin_endpoint,
            wait_replicas: self.wait_replicas,
            directory: self.redis.clone(),
        })
    }
}

/// Returns the backend that is set, or that the tokens or the storage imply.
fn read_backend(values: &mut Values, storage: StorageBackend) -> Backend {
    let set = values.get(
        "keys.backend",
        optional(one_of([
            ("sqlite", Backend::Sqlite),
            ("memory", Backend::Memory),
            ("postgres", Backend::Postgres),
            ("redis", Backend::Redis),
        ])),
    );
    let (implied, name, reason) = match storage {
        _ if values.is_set(TOKENS) => (Backend::Memory, "memory", TOKENS),
        StorageBackend::Memory => (Backend::Memory, "memory", "storage.backend"),
        StorageBackend::Sqlite => (Backend::Sqlite, "sqlite", "storage.backend"),
        StorageBackend::Postgres => (Backend::Postgres, "postgres", "storage.backend"),
    };
    if set.is_none() {
        values.imply("keys.backend", name, reason);
    }
    let backend = set.unwrap_or(implied);
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
    let has_url = values.is_set(URL);
    values.require(
        has_url || backend != Backend::Redis,
        &[URL],
        "is required if keys.backend is redis",
    );
    backend
}

/// Returns the tokens: a list, or a text with commas or line ends.
fn open_tokens(files: &mut Files) -> Vec<SecretString> {
    let secret = files.secret(TOKENS);
    let text = secret.as_ref().map_or("", ExposeSecret::expose_secret);
    let tokens: Vec<_> = items(text).map(SecretString::from).collect();
    for (token, number) in tokens.iter().zip(1..) {
        let parsed = ApiToken::parse(token.clone())
            .map_err(|error| format!("contains an invalid token, number {number}: {error}"));
        files.check(TOKENS, parsed);
    }
    tokens
}

fn open_endpoint(files: &mut Files, name: &'static str, tls: &RedisTls) -> Option<RedisEndpoint> {
    let url = files.secret(name)?;
    check_endpoint(files, name, RedisEndpoint::parse(&url, tls.clone()))
}

/// Returns what was opened, or adds the error about the URL, or about the file that the error is about.
fn check_endpoint<T>(
    files: &mut Files,
    url: &str,
    opened: Result<T, RedisEndpointError>,
) -> Option<T> {
    let name = match opened {
        Err(RedisEndpointError::Authority(_)) => AUTHORITY,
        Err(RedisEndpointError::Certificate(_)) => CERTIFICATE,
        Err(RedisEndpointError::PrivateKey(_)) => PRIVATE_KEY,
        _ => url,
    };
    files.check(name, opened)
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
}
