use std::{
    env,
    process::id,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{RedisServer, redis::redis_cli};

static SPACES: AtomicU32 = AtomicU32::new(0);

/// A part of a Redis server for one test: in the server that `TEST_REDIS_URL` names, otherwise in one of its own.
pub struct RedisSpace {
    url: String,
    prefix: String,
    server: Option<RedisServer>,
}

impl RedisSpace {
    /// A new one, with nothing in it.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let prefix = format!("test-{now}-{}-{}:", id(), SPACES.fetch_add(1, Ordering::Relaxed));
        if let Some(url) = env::var_os("TEST_REDIS_URL") {
            return Self { url: url.into_string().expect("UTF-8"), prefix, server: None };
        }
        let server = RedisServer::start();
        Self { url: server.url(), prefix, server: Some(server) }
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What every name of this test begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Runs a command by `redis-cli` and returns what that printed.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        redis_cli(&["-u", &self.url], words)
    }

    /// Every name of this test.
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
