use std::{
    env,
    process::id,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{RedisServer, redis::redis_cli};

static SPACES: AtomicU32 = AtomicU32::new(0);

/// A prefix in a Redis server for one test: the server is that of `TEST_REDIS_URL`, otherwise a new one.
pub struct RedisSpace {
    url: String,
    prefix: String,
    server: Option<RedisServer>,
}

impl RedisSpace {
    /// Creates an empty space.
    pub fn new() -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_nanos();
        let prefix = format!(
            "test-{now}-{}-{}:",
            id(),
            SPACES.fetch_add(1, Ordering::Relaxed)
        );
        if let Some(url) = env::var_os("TEST_REDIS_URL") {
            return Self {
                url: url.into_string().expect("UTF-8"),
                prefix,
                server: None,
            };
        }
        let server = RedisServer::start();
        Self {
            url: server.url(),
            prefix,
            server: Some(server),
        }
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Prefix of every name of this test.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Runs a command with `redis-cli` and returns its output.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        redis_cli(&["-u", &self.url], words)
    }

    /// Returns every name of this test.
    pub fn names(&self) -> Vec<String> {
        let names = self.command(&["--scan", "--pattern", &format!("{}*", self.prefix)]);
        names.lines().map(str::to_owned).collect()
    }
}

impl Default for RedisSpace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RedisSpace {
    fn drop(&mut self) {
        if self.server.is_none() {
            for name in self.names() {
                self.command(&["DEL", &name]);
            }
        }
    }
}
