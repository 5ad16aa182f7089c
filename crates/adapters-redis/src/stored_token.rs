//! The hash of one token.

use std::time::{Duration, UNIX_EPOCH};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel,
    ports::{NewToken, TokenEntry},
};
use redis::{ErrorKind, Pipeline, RedisError, RedisResult, Value, aio::MultiplexedConnection, from_redis_value, pipe};
use thiserror::Error;

use crate::store_error::Failure;

/// The fields that say whose token it is.
pub(crate) const KEY_FIELDS: [&str; 3] = ["id", "label", "scopes"];
/// Their values.
pub(crate) type KeyFields = (Option<String>, Option<String>, Option<String>);

const LAST_FOUR: &str = "last4";
const CREATED: &str = "created";

/// The longest time that Redis is asked to wait: some 285,000 years, which it can still count in milliseconds.
const MAX_MILLISECONDS: u64 = 1 << 53;

/// What is stored under the name of a token and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Corrupt {
    #[error("what Redis holds of a token is no hash")]
    NoHash,
    #[error("what Redis holds of a token is no text")]
    NoText,
    #[error("what Redis holds of a token lacks an id, a label or scopes")]
    MissingField,
    #[error("what Redis holds as a label is none")]
    Label,
}

impl Corrupt {
    /// Whether this is why Redis, or what was made of its answer, failed.
    pub(crate) fn of(error: &RedisError) -> Option<Self> {
        // The code of a pipeline's error is that of none of its commands.
        let errors = error.clone().into_server_errors().unwrap_or_default();
        match error.kind() {
            _ if !errors.is_empty() && errors.iter().all(|(_, error)| error.code() == "WRONGTYPE") => {
                Some(Self::NoHash)
            }
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Some(Self::NoText),
            _ => None,
        }
    }
}

/// Whose token it is; `None` where there is nothing. Scopes that this program does not know are left out.
pub(crate) fn key(fields: KeyFields) -> Result<Option<ApiKey>, Corrupt> {
    let (id, label, scopes) = match fields {
        (None, None, None) => return Ok(None),
        (Some(id), Some(label), Some(scopes)) => (id, label, scopes),
        _ => return Err(Corrupt::MissingField),
    };
    Ok(Some(ApiKey {
        id: ApiKeyId::new(&id),
        label: ApiKeyLabel::parse(&label).map_err(|_| Corrupt::Label)?,
        scopes: scopes.split(',').filter_map(|scope| scope.parse().ok()).collect(),
    }))
}

/// How long a token is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Over,
    Left(Duration),
    Endless,
}

impl Life {
    /// By the answer to PTTL, in milliseconds.
    pub(crate) fn of(left: i64) -> Self {
        match u64::try_from(left) {
            Ok(left) => Self::Left(Duration::from_millis(left)),
            Err(_) if left == -2 => Self::Over,
            Err(_) => Self::Endless,
        }
    }
}

/// Commands that a token is asked about with.
const QUESTIONS: usize = 3;
/// Tokens that are read at a time.
const TOKENS_AT_A_TIME: usize = 500;

/// A token that has not ended.
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) key: ApiKey,
    pub(crate) left: Option<Duration>,
    last_four: String,
    /// Seconds since 1970.
    created: u64,
}

impl StoredToken {
    /// Those with these names that have not ended.
    pub(crate) async fn read_all(
        connection: &mut MultiplexedConnection,
        names: &[String],
    ) -> Result<Vec<Self>, Failure> {
        let mut tokens = Vec::new();
        for names in names.chunks(TOKENS_AT_A_TIME) {
            let mut question = pipe();
            for name in names {
                Self::ask(&mut question, name);
            }
            let answers: Vec<Value> = question.query_async(connection).await?;
            for (name, answers) in names.iter().zip(answers.chunks_exact(QUESTIONS)) {
                tokens.extend(Self::read(name, answers)??);
            }
        }
        Ok(tokens)
    }

    fn ask(question: &mut Pipeline, name: &str) {
        question.cmd("HMGET").arg(name).arg(&KEY_FIELDS);
        question.cmd("HMGET").arg(name).arg(&[LAST_FOUR, CREATED]);
        question.cmd("PTTL").arg(name);
    }

    /// The token that these answers describe; `Ok(None)` where it has ended.
    fn read(name: &str, answers: &[Value]) -> RedisResult<Result<Option<Self>, Corrupt>> {
        let (fields, (last_four, created), milliseconds): (KeyFields, (Option<String>, Option<u64>), i64) =
            from_redis_value(Value::Array(answers.to_vec()))?;
        let left = match Life::of(milliseconds) {
            Life::Over => return Ok(Ok(None)),
            Life::Left(left) => Some(left),
            Life::Endless => None,
        };
        Ok(key(fields).map(|key| {
            Some(Self {
                name: name.to_owned(),
                key: key?,
                left,
                last_four: last_four.unwrap_or_default(),
                created: created.unwrap_or_default(),
            })
        }))
    }

    /// What may be shown of it, where it is so late after 1970.
    pub(crate) fn entry(self, now: Duration) -> TokenEntry {
        let half_a_second = Duration::from_millis(500);
        let end = |left| UNIX_EPOCH + Duration::from_secs((now + left + half_a_second).as_secs());
        TokenEntry {
            key: self.key,
            last_four: self.last_four,
            created: UNIX_EPOCH + Duration::from_secs(self.created),
            expires: self.left.map(end),
        }
    }
}

/// Stores a token of this key under this name, for as long as it lives.
pub(crate) fn store(change: &mut Pipeline, name: &str, key: &ApiKey, token: &NewToken, now: Duration) {
    let [id, label, scopes] = KEY_FIELDS;
    let mut command = redis::cmd("HSET");
    command.arg(name).arg(id).arg(key.id.as_str()).arg(label).arg(key.label.as_str());
    command
        .arg(scopes)
        .arg(key.scopes.to_string())
        .arg(LAST_FOUR)
        .arg(&token.last_four)
        .arg(CREATED)
        .arg(now.as_secs());
    change.add_command(command).ignore();
    if let Some(lifetime) = token.lifetime {
        end_after(change, name, lifetime);
    }
}

/// Lets Redis end a token when this time has passed.
pub(crate) fn end_after(change: &mut Pipeline, name: &str, time: Duration) {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min(MAX_MILLISECONDS);
    change.cmd("PEXPIRE").arg(name).arg(milliseconds).ignore();
}

/// The time by Redis' own clock, since 1970, by the answer to TIME.
pub(crate) fn time((seconds, microseconds): (u64, u32)) -> Duration {
    Duration::from_secs(seconds) + Duration::from_micros(microseconds.into())
}
