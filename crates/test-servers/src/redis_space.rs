use crate::RedisServer;

/// A Redis server for one test, in which every name has a prefix.
pub struct RedisSpace {
    url: String,
    server: RedisServer,
}

impl RedisSpace {
    /// Starts an empty server.
    pub fn new() -> Self {
        let server = RedisServer::start();
        Self {
            url: server.url(),
            server,
        }
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Prefix of every name of this test.
    pub const fn prefix(&self) -> &'static str {
        "test:"
    }

    /// Runs a command with `redis-cli` and returns its output.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        self.server.command(words)
    }

    /// Returns every name of this test.
    pub fn names(&self) -> Vec<String> {
        let names = self.command(&["KEYS", "test:*"]);
        names.lines().map(str::to_owned).collect()
    }
}

impl Default for RedisSpace {
    fn default() -> Self {
        Self::new()
    }
}
