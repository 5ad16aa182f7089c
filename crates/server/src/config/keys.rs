use animal_store_adapters_http::is_bearer_token;
use secrecy::{ExposeSecret, SecretString};

use super::{
    HttpConfig, Key,
    values::{Values, one_of},
};

const BACKEND: Key =
    Key::new("keys.backend", "memory", "Where API keys are looked up. `memory`: those of `keys.memory.tokens`.");
const TOKENS: Key = Key::secret(
    "keys.memory.tokens",
    "The tokens of the API keys: a list, or a text with commas. With none, one is made at start-up and shown on \
     standard error, as long as `http.listen` is a loopback address.",
);

pub(super) const KEYS: &[Key] = &[BACKEND, TOKENS];

/// Where API keys are looked up.
#[derive(Debug)]
pub enum KeysConfig {
    /// In this process.
    Memory {
        /// The tokens; with none, one is to be made.
        tokens: Vec<SecretString>,
    },
}

#[derive(Clone)]
enum Backend {
    Memory,
}

impl KeysConfig {
    pub(super) fn read(values: &mut Values, http: Option<&HttpConfig>) -> Option<Self> {
        let Backend::Memory = values.read(&BACKEND, one_of(&[("memory", Backend::Memory)]))?;
        let tokens = values.read_secrets(&TOKENS);
        for (token, number) in tokens.iter().zip(1..) {
            if !is_bearer_token(token.expose_secret()) {
                values.problem(
                    &TOKENS,
                    &format!("cannot hold token {number}: a token has 1 to 512 of A-Z a-z 0-9 - . _ ~ + / and ends in any number of ="),
                );
            }
        }
        if tokens.is_empty() && http.is_some_and(|http| !http.listen.ip().is_loopback()) {
            values.problem(&TOKENS, "is required where http.listen is not a loopback address");
        }
        Some(Self::Memory { tokens })
    }
}
