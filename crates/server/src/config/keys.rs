mod redis;

use animal_store_app::ApiToken;
use secrecy::SecretString;

pub use self::redis::RedisKeysConfig;
use super::{
    HttpConfig, Key,
    values::{Values, one_of},
};

const BACKEND: Key = Key::new(
    "keys.backend",
    "memory",
    "Where API keys are looked up. `memory`: those of `keys.memory.tokens`. `redis`: those that `animal-store keys` \
     issued; see [operations](operations.md).",
);
const TOKENS: Key = Key::secret(
    "keys.memory.tokens",
    "The tokens of the API keys: a list, or a text with commas. With none, one is made at start-up and shown on \
     standard error, as long as `http.listen` is a loopback address.",
);

pub(super) const KEYS: &[Key] = &[
    BACKEND,
    TOKENS,
    redis::URL,
    redis::TLS_CA_FILE,
    redis::TLS_CERT_FILE,
    redis::TLS_KEY_FILE,
    redis::PREFIX,
    redis::TIMEOUT,
    redis::LEASE,
    redis::MAX_KNOWN,
    redis::MAX_UNKNOWN,
    redis::MAX_LOOK_UPS,
];

/// Where API keys are looked up.
#[derive(Debug)]
pub enum KeysConfig {
    /// In this process.
    Memory {
        /// The tokens; with none, one is to be made.
        tokens: Vec<SecretString>,
    },
    /// In Redis.
    Redis(RedisKeysConfig),
}

#[derive(Clone)]
enum Backend {
    Memory,
    Redis,
}

impl KeysConfig {
    pub(super) fn read(values: &mut Values, http: Option<&HttpConfig>) -> Option<Self> {
        match values.read(&BACKEND, one_of(&[("memory", Backend::Memory), ("redis", Backend::Redis)]))? {
            Backend::Memory => Some(Self::Memory { tokens: tokens(values, http) }),
            Backend::Redis => RedisKeysConfig::read(values).map(Self::Redis),
        }
    }
}

fn tokens(values: &mut Values, http: Option<&HttpConfig>) -> Vec<SecretString> {
    let tokens = values.read_secrets(&TOKENS);
    for (token, number) in tokens.iter().zip(1..) {
        if let Err(reason) = ApiToken::parse(token.clone()) {
            values.problem(&TOKENS, &format!("cannot hold token {number}: {reason}"));
        }
    }
    if tokens.is_empty() && http.is_some_and(|http| !http.listen.ip().is_loopback()) {
        values.problem(&TOKENS, "is required where http.listen is not a loopback address");
    }
    tokens
}
