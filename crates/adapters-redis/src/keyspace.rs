//! The API keys of one Redis, and why a call of it failed.

use std::{result, time::Duration};

use animal_store_app::{
    ApiKeyDigest,
    ports::{ApiKeyUse, StoreFailure, StoreResult},
};
use redis::{ErrorKind, RedisError};

use crate::connection::{Connection, RedisEndpoint, describe, is_cut};

pub(crate) type Result<T> = result::Result<T, RedisFailure>;

/// API keys in Redis: the server, and the names. Each name contains the version of the layout, so that programs with
/// different layouts share no entry.
#[derive(Debug, Clone)]
pub(crate) struct Keyspace {
    pub(crate) endpoint: RedisEndpoint,
    /// Timeout for opening a connection, and for each response.
    pub(crate) timeout: Duration,
    /// Prefix of the names of tokens. Each token is a hash, see `token` and `admin::token`.
    pub(crate) tokens: String,
    /// Name of the index, a hash: for each API key id, the digests of its tokens, oldest first, separated by spaces.
    pub(crate) index: String,
    /// Name of the audit log, a sorted set by the times of its entries, see `admin::audit`.
    pub(crate) audit_log: String,
    /// Prefix of the names of the record of uses, see `use_record`.
    uses: String,
    /// Pattern of all names, as in the rules for a Redis user.
    names: String,
}

/// A call of Redis failed. It can be cloned for each request that waits for its outcome.
#[derive(Debug, Clone)]
pub(crate) enum RedisFailure {
    /// There is no connection, or too many changes interrupt each other.
    Unavailable(String),
    Timeout,
    /// A command was refused, or the connection was lost.
    Command(RedisError),
    /// The connection was lost after a change was sent.
    Unconfirmed(RedisError),
    /// The value under the name of a token is not a token.
    Corrupt(String),
}

impl Keyspace {
    /// `prefix`: that of every name.
    pub(crate) fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        let name = |part: &str| format!("{prefix}v1:{part}");
        Self {
            endpoint,
            timeout,
            tokens: name("token:"),
            index: name("index"),
            audit_log: name("changes"),
            uses: name("uses:"),
            names: name("*"),
        }
    }

    /// Returns the name of the token with this digest.
    pub(crate) fn token(&self, digest: &ApiKeyDigest) -> String {
        self.tokens.clone() + &hex::encode(digest.0)
    }

    /// Returns the digest of the token with this name.
    pub(crate) fn digest(&self, name: &[u8]) -> Option<ApiKeyDigest> {
        parse_digest(name.strip_prefix(self.tokens.as_bytes())?)
    }

    /// Returns the name of a part of the record of uses.
    pub(crate) fn uses(&self, part: &str) -> String {
        self.uses.clone() + part
    }

    /// Returns the name of the sorted set of the last uses of this kind.
    pub(crate) fn last_uses(&self, kind: ApiKeyUse) -> String {
        self.uses(match kind {
            ApiKeyUse::Request => "request",
            ApiKeyUse::GetPet => "get-pet",
        })
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        let opened = self.endpoint.connect(self.timeout, |_| ()).await;
        opened.map_err(RedisFailure::Unavailable)
    }

    /// Returns the failure of a call without a session.
    pub(crate) fn not_connected(&self) -> RedisFailure {
        RedisFailure::Unavailable(format!(
            "there is no connection to Redis at {}",
            self.endpoint
        ))
    }

    pub(crate) fn describe(&self, failure: &RedisFailure) -> String {
        match failure {
            RedisFailure::Unavailable(reason) | RedisFailure::Corrupt(reason) => reason.clone(),
            RedisFailure::Timeout => format!("Redis at {} did not respond in time", self.endpoint),
            RedisFailure::Command(error) | RedisFailure::Unconfirmed(error) => {
                describe(&self.endpoint, error, &self.names)
            }
        }
    }

    /// Converts the outcome of a call to that of a port.
    pub(crate) fn checked<T>(&self, outcome: Result<T>) -> StoreResult<T> {
        outcome.map_err(|failure| {
            let cause = self.describe(&failure).into();
            match failure {
                RedisFailure::Unavailable(_) | RedisFailure::Command(_) => {
                    StoreFailure::Unavailable(cause)
                }
                RedisFailure::Timeout => StoreFailure::Timeout,
                RedisFailure::Unconfirmed(_) => StoreFailure::OutcomeUnknown(cause),
                RedisFailure::Corrupt(_) => StoreFailure::Corrupt(cause),
            }
        })
    }
}

impl RedisFailure {
    /// The value that Redis holds for a token is not a token, for this reason.
    pub(crate) fn corrupt(reason: &str) -> Self {
        Self::Corrupt(format!(
            "the value that Redis holds for a token is not valid: {reason}"
        ))
    }

    /// Adds the id of the key that a token is listed for.
    pub(crate) fn of_key(self, id: &str) -> Self {
        match self {
            Self::Corrupt(reason) => Self::Corrupt(format!("API key {id}: {reason}")),
            failure => failure,
        }
    }

    /// Converts the error of a change. If Redis refused it, nothing was applied.
    pub(crate) fn of_change(error: RedisError) -> Self {
        if error.code().is_some() {
            Self::Command(error)
        } else {
            Self::Unconfirmed(error)
        }
    }

    /// Returns whether the connection was lost.
    pub(crate) fn is_disconnection(&self) -> bool {
        matches!(self, Self::Command(error) if error.is_connection_dropped() || is_cut(error))
    }
}

impl From<RedisError> for RedisFailure {
    fn from(error: RedisError) -> Self {
        // The driver has no kind for WRONGTYPE: the error of a pipeline with it has no code, its replies have.
        let replies = error.clone().into_server_errors().unwrap_or_default();
        let mut codes = replies.iter().map(|(_, reply)| reply.code());
        if !replies.is_empty() && codes.all(|code| code == "WRONGTYPE") {
            return Self::corrupt("it is not a hash");
        }
        match error.kind() {
            _ if is_cut(&error) => Self::Command(error),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => {
                Self::corrupt("a field is malformed")
            }
            _ if error.is_timeout() => Self::Timeout,
            _ => Self::Command(error),
        }
    }
}

/// Parses a digest as the names of tokens and the index have it.
pub(crate) fn parse_digest(hex: &[u8]) -> Option<ApiKeyDigest> {
    let mut digest = [0; 32];
    hex::decode_to_slice(hex, &mut digest).ok()?;
    Some(ApiKeyDigest(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::RedisTls;

    #[test]
    fn names_begin_with_the_prefix_and_that_of_a_token_ends_with_its_sha_256() {
        let endpoint = RedisEndpoint::parse(&"redis://localhost".into(), RedisTls::default())
            .expect("an endpoint");
        let keyspace = Keyspace::new(endpoint, "shop:", Duration::ZERO);
        let digest = ApiKeyDigest::of(&"abc".into());
        let name = keyspace.token(&digest);
        assert_eq!(
            name,
            "shop:v1:token:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(keyspace.digest(name.as_bytes()), Some(digest));
        for other in [
            &name[..14],
            &name[..77],
            &format!("{name}0"),
            &name.replace("ba78", "xa78"),
            &name[8..],
        ] {
            assert_eq!(keyspace.digest(other.as_bytes()), None, "{other}");
        }
        assert_eq!(
            (&*keyspace.index, &*keyspace.names),
            ("shop:v1:index", "shop:v1:*")
        );
        // No invalidation follows the record of uses.
        let names = ApiKeyUse::ALL.map(|kind| keyspace.last_uses(kind));
        assert_eq!(names, ["shop:v1:uses:request", "shop:v1:uses:get-pet"]);
    }
}
