use crate::{
    home::Home,
    redis::{RedisServer, redis_cli},
    server::Server,
    wait::wait_until,
    watched::Watched,
};

/// A Redis Sentinel, which calls the master that it watches `shop`.
///
/// A master is down after an hour, so that a busy machine causes no fail-over: see [`SentinelServer::notice`].
pub type SentinelServer = Server<Sentinel>;

/// The kind of a [`SentinelServer`].
pub enum Sentinel {}

impl SentinelServer {
    /// Starts a Sentinel that watches this master, with TLS if the master has it. This number of Sentinels has to agree
    /// that the master is down.
    pub fn of(master: &RedisServer, quorum: usize) -> Self {
        // The certificate of a server with TLS is for this name.
        let host = if master.certificates.is_some() {
            "localhost"
        } else {
            "127.0.0.1"
        };
        let mut options = vec![
            "bind 127.0.0.1".to_owned(),
            "sentinel resolve-hostnames yes".to_owned(),
            "sentinel announce-hostnames yes".to_owned(),
            format!("sentinel monitor shop {host} {} {quorum}", master.port()),
            "sentinel down-after-milliseconds shop 3600000".to_owned(),
            "sentinel failover-timeout shop 2000".to_owned(),
        ];
        if let Some(files) = &master.certificates {
            options.extend([
                format!("tls-cert-file {}", files.server.display()),
                format!("tls-key-file {}", files.server_key.display()),
                format!("tls-ca-cert-file {}", files.authority.display()),
                "tls-replication yes".to_owned(),
            ]);
        }
        Self::start_by(
            Self::launch,
            Home::for_this_user(),
            options,
            master.certificates.clone(),
        )
    }

    /// Starts three Sentinels of this master, which has this number of replicas. Returns when they know all others.
    pub fn three_of(master: &RedisServer, replicas: usize) -> [Self; 3] {
        let sentinels = [(); 3].map(|()| Self::of(master, 2));
        wait_until(|| {
            sentinels.iter().all(|sentinel| {
                let known = ["num-slaves", "num-other-sentinels"].map(|name| sentinel.value(name));
                known == [replicas.to_string(), "2".to_owned()]
            })
        });
        sentinels
    }

    fn launch(&self) -> Result<Watched, String> {
        let ports = self.plain_and_tls_port();
        let ports = format!("port {}\ntls-port {}", ports[0], ports[1]);
        let options = self.options.join("\n");
        let file = format!("{ports}\n{options}\n");
        let file = self.home.write("sentinel.conf", &file);
        let options = [file.display().to_string(), "--sentinel".to_owned()];
        let ready = "+monitor master";
        Watched::start(&self.home, "KILL", "redis-server", &options, ready)
    }

    /// Lets the Sentinel consider a master down that has not responded for 200 ms.
    pub fn notice(&self) {
        self.down_after("200");
    }

    /// Ends the effect of [`SentinelServer::notice`], and waits until the Sentinel considers the master up.
    pub fn calm(&self) {
        self.down_after("3600000");
        wait_until(|| self.value("flags") == "master");
    }

    fn down_after(&self, milliseconds: &str) {
        self.run(&format!(
            "SENTINEL SET shop down-after-milliseconds {milliseconds}"
        ));
    }

    /// Returns what the Sentinel knows of the master.
    fn value(&self, name: &str) -> String {
        let master = self.run("SENTINEL MASTER shop");
        master
            .lines()
            .skip_while(|line| *line != name)
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    }

    /// Runs a command of words without spaces, with `redis-cli`, and returns its output. Without TLS only.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        redis_cli(&["-p", &self.port.to_string()], &words)
    }
}
