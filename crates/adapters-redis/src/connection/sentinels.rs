//! The Sentinels that know which server is the master of a service.
//!
//! More than half of the Sentinels in the URL must name the same master. One that was cut off or has just started may
//! name a master that the others have replaced, and that accepts revoked keys.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, aio::MultiplexedConnection, cmd,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::mpsc, time};

pub(super) struct Sentinels {
    pub(super) addresses: Vec<ConnectionAddr>,
    /// The name of the master in the configuration of the Sentinels.
    pub(super) service: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<SecretString>,
    /// For TLS with the Sentinels and with the server.
    pub(super) certificates: Option<TlsCertificates>,
    /// Connections for the next question, by the index of the address.
    pub(super) connections: Mutex<BTreeMap<usize, MultiplexedConnection>>,
}

/// The address of a server, as a Sentinel knows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Sentinels {
    /// Asks all Sentinels for the master. `timeout` bounds opening a connection, and each response.
    pub(super) async fn find_master(self: &Arc<Self>, timeout: Duration) -> RedisResult<Master> {
        let count = self.addresses.len();
        let (sender, mut answers) = mpsc::channel(count);
        for index in 0..count {
            let sentinels = Arc::clone(self);
            let sender = sender.clone();
            // An answer that comes after the majority keeps its connection, and one that never comes ends it.
            tokio::spawn(async move { sender.send(sentinels.ask(index, timeout).await).await });
        }
        drop(sender);
        let mut named = Vec::new();
        let mut failure =
            RedisError::from((ErrorKind::Client, "the Sentinels name different masters"));
        while let Some(answer) = answers.recv().await {
            match answer {
                Err(error) => failure = error,
                Ok(master) => {
                    named.push(master.clone());
                    if named.iter().filter(|other| **other == master).count() > count / 2 {
                        return Ok(master);
                    }
                }
            }
        }
        Err(failure)
    }

    async fn ask(&self, index: usize, timeout: Duration) -> RedisResult<Master> {
        let kept = self.connections().get(&index).cloned();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(index, timeout).await?,
        };
        let mut question = cmd("SENTINEL");
        question.arg("MASTERS");
        let answer = time::timeout(timeout, question.query_async(&mut connection)).await;
        let asked: RedisResult<Vec<HashMap<String, String>>> =
            answer.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        match &asked {
            Ok(_) => self.connections().insert(index, connection),
            Err(_) => self.connections().remove(&index),
        };
        let master = asked?.iter().find_map(|master| self.master(master));
        master.ok_or_else(|| {
            let problem = "a Sentinel knows no master of this name that is up";
            (ErrorKind::Client, "no master", problem.to_owned()).into()
        })
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<usize, MultiplexedConnection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self, index: usize, timeout: Duration) -> RedisResult<MultiplexedConnection> {
        // With RESP3, the reason for a refused login is that of the server.
        let mut login = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password.expose_secret());
        }
        let info = self.addresses[index].clone().into_connection_info()?;
        let info = info.set_redis_settings(login);
        let client = match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        };
        // A question has its own timeout.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(None);
        client?
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    /// Returns the address in an entry of `SENTINEL MASTERS`, if it is the service and the master is up.
    fn master(&self, entry: &HashMap<String, String>) -> Option<Master> {
        let is_down = |flag| matches!(flag, "s_down" | "o_down");
        if entry.get("name") != Some(&self.service) || entry.get("flags")?.split(',').any(is_down) {
            return None;
        }
        Some(Master {
            host: entry.get("ip")?.clone(),
            port: entry.get("port")?.parse().ok()?,
        })
    }
}

/// Prints the service and the addresses: the rest may be secret.
impl fmt::Display for Sentinels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        write!(formatter, "{} of {}", self.service, addresses.join(","))
    }
}
