use std::{collections::HashMap, convert::Infallible, time::Duration};

use redis::{
    AsyncConnectionConfig, ErrorKind, PushInfo, RedisError, RedisResult, Value,
    aio::MultiplexedConnection, cmd, from_redis_value,
};

use tokio::time;

use super::endpoint::{CLIENT_NAME, RedisEndpoint};

const SEE_USERS: &str = "docs/operations/redis.md lists the permissions that it needs";

impl RedisEndpoint {
    /// Returns the server, or why it is not known: with Sentinels, they are asked which one is the master now.
    pub(crate) async fn master(&self, timeout: Duration) -> Result<Self, String> {
        let Some(sentinels) = &self.sentinels else {
            return Ok(self.clone());
        };
        let find = async { self.at(sentinels.find_master(timeout).await?) };
        let reason = match time::timeout(timeout, find).await {
            Ok(Ok(master)) => return Ok(master),
            Ok(Err(error)) if !error.is_timeout() => text(&error),
            _ => "too few Sentinels responded in time".to_owned(),
        };
        Err(format!(
            "the master {self} is not known: {reason}; see \"Sentinel\" in docs/operations/redis.md"
        ))
    }

    /// Opens a connection to a master, or returns why it could not be opened. `timeout` bounds finding the master,
    /// opening the connection, and each response. `on_push` is called for each push message, in the order in which
    /// pushes and responses arrive.
    pub(crate) async fn connect(
        &self,
        timeout: Duration,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<MultiplexedConnection, String> {
        let server = self.master(timeout).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push| {
                on_push(push);
                Ok::<_, Infallible>(())
            });
        let opened = async {
            let connection = server
                .client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            check_role(connection.clone()).await?;
            Ok(connection)
        };
        opened
            .await
            .map_err(|error| describe_connect(&server, &error))
    }
}

/// Fails if the server is not a master: a replica that has lost its master never learns of a revocation. Sets the name
/// that `CLIENT LIST` shows as well. Every user may execute `HELLO`; `ROLE` and `CLIENT SETNAME` would need
/// permissions.
pub(crate) async fn check_role(mut connection: MultiplexedConnection) -> RedisResult<()> {
    let mut query = cmd("HELLO");
    query.arg(3).arg("SETNAME").arg(CLIENT_NAME);
    let mut hello: HashMap<String, Value> = query.query_async(&mut connection).await?;
    let role = hello.remove("role");
    let role: Option<String> = role.map(from_redis_value).transpose()?;
    let problem = match role.as_deref() {
        Some("master") => return Ok(()),
        None => "the server is a Sentinel: the URL must begin with redis+sentinel://",
        Some(_) => "the server is a replica; connect to the master",
    };
    Err((ErrorKind::Client, "not a master", problem.to_owned()).into())
}

/// Describes why a command failed. `names` is the pattern of the names to which the user needs access.
pub(crate) fn describe(endpoint: &RedisEndpoint, error: &RedisError, names: &str) -> String {
    let text = text(error);
    let user = endpoint.user();
    // "has no permissions to access" of Redis 7.0, "No permissions to access" of later servers and of Valkey.
    if text.contains("permissions to access") {
        format!(
            "Redis at {endpoint} refused the user {user:?} access to the names {names}: {text}; {SEE_USERS}"
        )
    } else if text.contains("has no permissions")
        || text.contains("The user executing the script can't")
    {
        format!("Redis at {endpoint} refused a command of the user {user:?}: {text}; {SEE_USERS}")
    } else if text.starts_with("NOAUTH") {
        format!("Redis at {endpoint} requires a password, and the URL contains none")
    } else if text.starts_with("WRONGPASS") {
        let advice = "check the user and the password in the URL";
        format!("Redis at {endpoint} refused the login of the user {user:?} (WRONGPASS); {advice}")
    } else if error.is_timeout() {
        format!("Redis at {endpoint} did not respond in time")
    } else if is_closed(error) || is_cut(error) {
        format!("Redis at {endpoint} closed the connection")
    } else {
        format!("Redis at {endpoint}: {text}")
    }
}

fn describe_connect(endpoint: &RedisEndpoint, error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::RESP3NotSupported => {
            format!("Redis at {endpoint} does not support RESP3: version 6.0 or later is required")
        }
        _ if is_cut(error) => describe(endpoint, error, ""),
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
            format!("the server at {endpoint} does not respond like Redis: check the address")
        }
        _ => describe(endpoint, error, "") + tls_hint(endpoint, error),
    }
}

fn tls_hint(endpoint: &RedisEndpoint, error: &RedisError) -> &'static str {
    let text = error.to_string();
    if error.is_timeout() && endpoint.uses_tls() {
        "; if it does not use TLS, the URL must begin with redis://"
    } else if is_closed(error) && !endpoint.uses_tls() {
        "; if it requires TLS, the URL must begin with rediss://; otherwise see whether its maxclients is reached"
    } else if text.contains("peer certificate") {
        "; check keys.redis.tls_ca_file and the host in the URL"
    } else if text.contains("fatal alert") {
        "; check keys.redis.tls_cert_file"
    } else {
        ""
    }
}

/// Returns whether the server closed a connection that it had accepted.
fn is_closed(error: &RedisError) -> bool {
    error.is_connection_dropped() && !error.is_connection_refusal()
}

/// Returns whether the connection was lost inside a response. The driver reports that it cannot parse the response.
pub(crate) fn is_cut(error: &RedisError) -> bool {
    let problem = error.detail().unwrap_or_default();
    error.kind() == ErrorKind::Parse
        && problem.starts_with("Parse error at")
        && problem.contains("end of input")
}

/// Returns the first error reply in the words of Redis, otherwise the words of the driver or the system.
fn text(error: &RedisError) -> String {
    let replies = error.clone().into_server_errors().unwrap_or_default();
    if let Some((_, reply)) = replies.first() {
        let text = format!("{} {}", reply.code(), reply.details().unwrap_or_default());
        return text.trim_end().to_owned();
    }
    match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.to_string(),
    }
}
