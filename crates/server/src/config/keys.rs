pub(super) mod redis;

use std::net::SocketAddr;

use animal_store_app::ApiToken;
use secrecy::SecretString;

use self::redis::RedisKeysConfig;
use super::{
    http,
    key::{Key, keys},
    values::{Values, one_of},
};

keys! {
    BACKEND: new("keys.backend", "memory",
        "Source of the API keys. `memory`: the tokens of `keys.memory.tokens`. `redis`: the keys that `animal-store \
         keys` issued; see [operations](operations.md).");
    TOKENS: secret("keys.memory.tokens",
        "Tokens of the API keys: a list, or a text with commas. If there is none and `http.listen` is a loopback \
         address, one is generated at the start and printed on standard error.");
}

#[derive(Debug)]
pub(crate) enum KeysConfig {
    Memory { tokens: Vec<SecretString> },
    Redis(Box<RedisKeysConfig>),
}

#[derive(Clone)]
enum Backend {
    Memory,
    Redis,
}

impl KeysConfig {
    pub(super) fn read(values: &mut Values, listen: SocketAddr) -> Option<Self> {
        let backend = values.read(&BACKEND, one_of(&[("memory", Backend::Memory), ("redis", Backend::Redis)]));
        let tokens = tokens(values);
        let redis = RedisKeysConfig::read(values, matches!(backend, Backend::Redis));
        match backend {
            Backend::Memory => {
                values.require(
                    !tokens.is_empty() || listen.ip().is_loopback(),
                    &[&TOKENS, &BACKEND, &http::LISTEN],
                    "is required unless http.listen is a loopback address",
                );
                Some(Self::Memory { tokens })
            }
            Backend::Redis => redis.map(Box::new).map(Self::Redis),
        }
    }
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
