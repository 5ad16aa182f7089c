//! The hash of one token.

use std::time::{Duration, UNIX_EPOCH};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, Scopes,
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

/// The last second that can be written as a date of RFC 3339.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// What is stored under the name of a token and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Corrupt {
    #[error("what Redis holds of a token is no hash")]
    NoHash,
    #[error("what Redis holds of a token is no text")]
    NoText,
    #[error("what Redis holds of a token lacks an id, a label or scopes")]
    MissingField,
    #[error("what Redis holds as an id, a label or the last four characters is none")]
    Text,
}

impl Corrupt {
    /// Whether this is why Redis, or what was made of its answer, failed.
    pub(crate) fn of(error: &RedisError) -> Option<Self> {
        // The code of a pipeline's error is that of none of its commands.
        let errors = error.clone().into_server_errors().unwrap_or_default();
        match error.kind() {
            _ if error.code() == Some("WRONGTYPE") => Some(Self::NoHash),
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
        id: ApiKeyId::parse(&id).map_err(|_| Corrupt::Text)?,
        label: ApiKeyLabel::parse(&label).map_err(|_| Corrupt::Text)?,
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
            Err(_) if left == -1 => Self::Endless,
            Err(_) => Self::Over,
        }
    }
}

/// Commands that a token is asked about with.
const QUESTIONS: usize = 4;
/// Tokens that are read at a time.
const TOKENS_AT_A_TIME: usize = 500;

/// A name that the index has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A token that has not ended.
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) key: ApiKey,
    pub(crate) left: Option<Duration>,
    /// When Redis said so, since 1970.
    now: Duration,
    last_four: String,
    /// Seconds since 1970.
    created: u64,
}

/// What Redis answers to those.
type Answers = (KeyFields, (Option<String>, Option<u64>), i64, (u64, u32));

/// The names that hold something, each with the token that it is or why it is none. A name whose token has ended, or
/// has come to belong to another key since, is left out.
pub(crate) async fn read_all(
    connection: &mut MultiplexedConnection,
    names: &[Owned],
) -> RedisResult<Vec<(Owned, Result<StoredToken, Corrupt>)>> {
    let mut found = Vec::new();
    for names in names.chunks(TOKENS_AT_A_TIME) {
        let mut question = pipe();
        for Owned { name, .. } in names {
            question.cmd("HMGET").arg(name).arg(&KEY_FIELDS);
            question.cmd("HMGET").arg(name).arg(&[LAST_FOUR, CREATED]);
            question.cmd("PTTL").arg(name).cmd("TIME");
        }
        // What is no hash fails its own questions, not those of the others.
        let answers: Vec<RedisResult<Value>> = question.ignore_errors().query_async(connection).await?;
        let mut answers = answers.into_iter();
        for owned in names {
            let ours: Vec<_> = answers.by_ref().take(QUESTIONS).collect();
            let ours = ours.into_iter().collect::<RedisResult<Vec<Value>>>();
            let token = match ours.and_then(|ours| Ok(from_redis_value(Value::Array(ours))?)) {
                Ok(answers) => StoredToken::of(&owned.name, answers),
                Err(error) => Err(Corrupt::of(&error).ok_or(error)?),
            };
            match token {
                Ok(Some(token)) if token.key.id.as_str() == owned.id => found.push((owned.clone(), Ok(token))),
                Ok(_) => {}
                Err(corrupt) => found.push((owned.clone(), Err(corrupt))),
            }
        }
    }
    Ok(found)
}

/// All of these, where each can be read.
pub(crate) fn readable(found: Vec<(Owned, Result<StoredToken, Corrupt>)>) -> Result<Vec<StoredToken>, Failure> {
    let readable = |(owned, token): (Owned, Result<_, _>)| token.map_err(|corrupt| Failure::Token(owned.id, corrupt));
    found.into_iter().map(readable).collect()
}

/// Whose tokens these are, by the newest one that can be read.
pub(crate) fn whose(found: &[(Owned, Result<StoredToken, Corrupt>)], id: &ApiKeyId) -> ApiKey {
    let readable = found.iter().rev().find_map(|(_, token)| token.as_ref().ok());
    readable.map_or_else(|| unreadable(id), |token| token.key.clone())
}

fn unreadable(id: &ApiKeyId) -> ApiKey {
    let label = ApiKeyLabel::parse("unreadable").expect("a label");
    ApiKey { id: id.clone(), label, scopes: Scopes::default() }
}

impl StoredToken {
    fn of(name: &str, (fields, (last_four, created), left, now): Answers) -> Result<Option<Self>, Corrupt> {
        let left = match Life::of(left) {
            Life::Over => return Ok(None),
            Life::Left(left) => Some(left),
            Life::Endless => None,
        };
        let Some(key) = key(fields)? else { return Ok(None) };
        let last_four = last_four.unwrap_or_default();
        if last_four.chars().count() > 4 || last_four.contains(char::is_control) {
            return Err(Corrupt::Text);
        }
        let name = name.to_owned();
        Ok(Some(Self { name, key, left, now: time(now), last_four, created: created.unwrap_or_default() }))
    }

    /// When it ends by Redis' clock, since 1970.
    pub(crate) fn end(&self) -> Option<Duration> {
        self.left.map(|left| self.now.saturating_add(left))
    }

    /// What may be shown of it.
    pub(crate) fn entry(self) -> TokenEntry {
        let date = |since_1970: Duration| UNIX_EPOCH + Duration::from_secs(since_1970.min(LAST_SECOND).as_secs());
        let half_a_second = Duration::from_millis(500);
        let expires = self.end().map(|end| date(end.saturating_add(half_a_second)));
        TokenEntry {
            key: self.key,
            last_four: self.last_four,
            created: date(Duration::from_secs(self.created)),
            expires,
        }
    }
}

/// Stores a token of this key under this name, until this time by Redis' clock, if there is one.
pub(crate) fn store(
    change: &mut Pipeline,
    name: &str,
    key: &ApiKey,
    token: &NewToken,
    now: Duration,
    end: Option<Duration>,
) {
    let [id, label, scopes] = KEY_FIELDS;
    let mut command = redis::cmd("HSET");
    command.arg(name).arg(id).arg(key.id.as_str()).arg(label).arg(key.label.as_str());
    command.arg(scopes).arg(key.scopes.to_string());
    command.arg(LAST_FOUR).arg(&token.last_four).arg(CREATED).arg(now.as_secs());
    change.add_command(command).ignore();
    if let Some(end) = end {
        end_at(change, name, end);
    }
}

/// Lets Redis end a token at this time by its clock, since 1970.
pub(crate) fn end_at(change: &mut Pipeline, name: &str, end: Duration) {
    let milliseconds = u64::try_from(end.min(LAST_SECOND).as_millis()).expect("13 digits");
    change.cmd("PEXPIREAT").arg(name).arg(milliseconds).ignore();
}

/// The time by Redis' own clock, since 1970, by the answer to TIME.
pub(crate) fn time((seconds, microseconds): (u64, u32)) -> Duration {
    Duration::from_secs(seconds) + Duration::from_micros(microseconds.into())
}
