//! The Sentinels that know which server is the master of a service.
//!
//! More than half of the Sentinels in the URL must name the same master. One that was cut off or has just started may
//! name a master that the others have replaced, and that accepts revoked keys.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, aio::MultiplexedConnection,
    cmd,
};
use tokio::sync::{Mutex, mpsc};

pub(super) struct Sentinels {
    /// The name of the master in the configuration of the Sentinels.
    pub(super) service: String,
    pub(super) members: Vec<Arc<Sentinel>>,
}

pub(super) struct Sentinel {
    client: Client,
    /// The connection for the next request.
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// The address of a server, as a Sentinel knows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) host: String,
    pub(super) port: u16,
}

/// An entry of the response to `SENTINEL MASTERS`.
type Entry = HashMap<String, String>;

impl Sentinels {
    /// Asks all Sentinels for the master. `timeout` bounds opening a connection, and each response.
    pub(super) async fn find_master(&self, timeout: Duration) -> RedisResult<Master> {
        let count = self.members.len();
        let (sender, mut responses) = mpsc::channel(count);
        for sentinel in &self.members {
            let sentinel = Arc::clone(sentinel);
            let sender = sender.clone();
            // A response after the majority keeps its connection, and one that never comes ends it.
            tokio::spawn(async move { sender.send(sentinel.ask(timeout).await).await });
        }
        drop(sender);
        let mut named = Vec::new();
        let mut failure =
            RedisError::from((ErrorKind::Client, "the Sentinels name different masters"));
        while let Some(response) = responses.recv().await {
            match response.and_then(|entries| self.master(&entries)) {
                Err(error) => failure = error,
                Ok(master) => {
                    named.push(master.clone());
                    let votes = named.iter().filter(|other| **other == master);
                    if votes.count() > count / 2 {
                        return Ok(master);
                    }
                }
            }
        }
        Err(failure)
    }

    /// Returns the address of the service's master, if it is up.
    fn master(&self, entries: &[Entry]) -> RedisResult<Master> {
        for entry in entries {
            if entry.get("name") == Some(&self.service)
                && let Some(master) = address(entry)
            {
                return Ok(master);
            }
        }
        let problem = "a Sentinel knows no master of this name that is up";
        Err((ErrorKind::Client, "no master", problem.to_owned()).into())
    }
}

impl Sentinel {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            connection: Mutex::default(),
        }
    }

    async fn ask(&self, timeout: Duration) -> RedisResult<Vec<Entry>> {
        let kept = self.connection.lock().await.clone();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(timeout).await?,
        };
        connection.set_response_timeout(timeout);
        let mut request = cmd("SENTINEL");
        request.arg("MASTERS");
        let response = request.query_async(&mut connection).await;
        *self.connection.lock().await = response.is_ok().then_some(connection);
        response
    }

    async fn connect(&self, timeout: Duration) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        self.client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }
}

/// Returns the address of a master that is up.
fn address(entry: &Entry) -> Option<Master> {
    let mut flags = entry.get("flags")?.split(',');
    if flags.any(|flag| matches!(flag, "s_down" | "o_down")) {
        return None;
    }
    Some(Master {
        host: entry.get("ip")?.clone(),
        port: entry.get("port")?.parse().ok()?,
    })
}

/// Prints the service and the addresses: the rest may be secret.
impl fmt::Display for Sentinels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut addresses = Vec::new();
        for member in &self.members {
            let info = member.client.get_connection_info();
            addresses.push(info.addr().to_string());
        }
        write!(formatter, "{} of {}", self.service, addresses.join(","))
    }
}
