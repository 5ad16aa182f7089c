pub(super) mod redis;

use std::{fmt, net::SocketAddr};

use animal_store_app::ApiToken;
use secrecy::SecretString;

use self::redis::RedisKeysConfig;
use super::{
    http,
    key::{Key, keys},
    storage::{self, Storage, StorageBackend, sqlite::SqliteConfig},
    values::{Values, one_of, optional},
};

keys! {
    BACKEND: new("keys.backend", "",
        "Source of the API keys. `sqlite`: the keys in the file `storage.sqlite.path`, which `animal-store keys` \
         administers. `memory`: the tokens of `keys.memory.tokens`. `redis`: the keys in Redis, which `animal-store \
         keys` administers; see [API keys](operations/keys.md). Empty: `memory` if `keys.memory.tokens` is set, otherwise \
         the value of `storage.backend`. With `storage.backend = \"postgres\"`, one of the two has to be set, and \
         `sqlite` is refused: each instance would have a file of its own.");
    TOKENS: secret("keys.memory.tokens",
        "Tokens of the API keys: a list, or a text with commas. If `keys.backend` is `memory`, there is none, and \
         `http.listen` is a loopback address, one is generated at the start and printed on standard error, except \
         under a service manager.");
}

#[derive(Debug)]
pub(crate) enum KeysConfig {
    Sqlite(SqliteConfig),
    Memory { tokens: Vec<SecretString> },
    Redis(Box<RedisKeysConfig>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Redis,
}

const BACKENDS: [(&str, Backend); 3] =
    [("sqlite", Backend::Sqlite), ("memory", Backend::Memory), ("redis", Backend::Redis)];

impl KeysConfig {
    /// Returns `None` if a required value is missing, which is an error.
    pub(super) fn read(values: &mut Values, listen: SocketAddr, storage: &Storage) -> Option<Self> {
        let set = values.read(&BACKEND, optional(one_of(&BACKENDS)));
        let tokens = tokens(values);
        let backend = set.or_else(|| derived(values, storage.backend, !tokens.is_empty()));
        let redis = RedisKeysConfig::read(values, backend == Some(Backend::Redis));
        match backend? {
            Backend::Sqlite => {
                values.require(
                    storage.backend != StorageBackend::Postgres,
                    &[&BACKEND, &storage::BACKEND],
                    "must not be sqlite if storage.backend is postgres, because each instance would have a file of \
                     its own: set it to redis, or set keys.memory.tokens",
                );
                Some(Self::Sqlite(storage.sqlite.clone()))
            }
            Backend::Memory => {
                values.require(
                    !tokens.is_empty() || listen.ip().is_loopback(),
                    &[&TOKENS, &BACKEND, &storage::BACKEND, &http::LISTEN],
                    "is required unless http.listen is a loopback address",
                );
                Some(Self::Memory { tokens })
            }
            Backend::Redis => redis.map(Box::new).map(Self::Redis),
        }
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
fn derived(values: &mut Values, storage: StorageBackend, has_tokens: bool) -> Option<Backend> {
    let backend = match storage {
        _ if has_tokens => Backend::Memory,
        StorageBackend::Sqlite => Backend::Sqlite,
        StorageBackend::Memory => Backend::Memory,
        StorageBackend::Postgres => {
            let rule = "is required if storage.backend is postgres: set it to redis, or set keys.memory.tokens";
            values.require(false, &[&BACKEND, &TOKENS, &storage::BACKEND], rule);
            return None;
        }
    };
    let name = BACKENDS.iter().find(|(_, choice)| *choice == backend).map(|(name, _)| *name);
    values.derive(&BACKEND, name.unwrap_or_default());
    Some(backend)
}

fn tokens(values: &mut Values) -> Vec<SecretString> {
    let tokens = values.read_secrets(&TOKENS);
    for (token, number) in tokens.iter().zip(1..) {
        if let Err(error) = ApiToken::parse(token.clone()) {
            values.add_error(&TOKENS, &format!("contains an invalid token, number {number}: {error}"));
        }
    }
    tokens
}
