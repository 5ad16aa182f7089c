use std::path::Path;

use crate::{
    Certificates, home::Home, postgres_data, psql::psql, server::Server, watched::Watched,
};

/// A PostgreSQL server whose data survives a crash of the server, but not of the machine.
///
/// The superuser is `postgres`. Connections over the Unix socket need no password.
pub type PostgresServer = Server<Postgres>;

/// The kind of a [`PostgresServer`].
pub enum Postgres {}

impl PostgresServer {
    /// Starts a server with the default settings.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with these settings: `["max_connections=5"]`.
    pub fn with(settings: &[&str]) -> Self {
        Self::start_in(Home::new(), "trust", settings, None)
    }

    /// Starts a server that accepts connections with and without TLS.
    pub fn with_tls() -> Self {
        let home = Home::new();
        let certificates = Certificates::make(home.path());
        home.make_private(&certificates.server_key);
        let certificate = format!("ssl_cert_file={}", certificates.server.display());
        let key = format!("ssl_key_file={}", certificates.server_key.display());
        let settings = ["ssl=on", &certificate, &key];
        Self::start_in(home, "trust", &settings, Some(certificates))
    }

    /// Starts a server that requires this password over TCP.
    pub fn with_password(password: &str) -> Self {
        let settings = ["password_encryption=scram-sha-256"];
        let server = Self::start_in(Home::new(), "scram-sha-256", &settings, None);
        let set = format!("ALTER ROLE postgres PASSWORD '{password}'");
        server.sql(&set);
        server
    }

    /// Starts the stopped server again as a standby, which has no primary.
    pub fn start_as_standby(&mut self) {
        self.home.write("data/standby.signal", "");
        self.start_again();
    }

    /// `access` is the method by which clients over TCP authenticate.
    fn start_in(
        home: Home,
        access: &str,
        settings: &[&str],
        certificates: Option<Certificates>,
    ) -> Self {
        let rules = format!("local all all trust\nhost all all 127.0.0.1/32 {access}\n");
        let rules = home.write("pg_hba.conf", &rules);
        let rules = format!("hba_file={}", rules.display());
        let sockets = format!("unix_socket_directories={}", home.path().display());
        let data = postgres_data::make(&home);
        let mut options = vec!["-D".to_owned(), data.display().to_string()];
        let own = [&*rules, &sockets, "listen_addresses=127.0.0.1", "fsync=off"];
        for setting in own.iter().chain(settings) {
            options.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        Self::start_by(Self::launch, home, options, certificates)
    }

    fn launch(&self) -> Result<Watched, String> {
        let mut options = self.options.clone();
        options.extend(["-p".to_owned(), self.port.to_string()]);
        // At this signal the server ends at once.
        Watched::start(&self.home, "QUIT", "postgres", &options, "ready to accept")
    }

    /// The URL of the database `postgres` over TCP, without a password.
    pub fn url(&self) -> String {
        let host = if self.certificates.is_some() {
            "localhost"
        } else {
            "127.0.0.1"
        };
        format!("postgres://postgres@{host}:{}/postgres", self.port)
    }

    /// The folder of the Unix socket.
    pub fn socket_directory(&self) -> &Path {
        self.home.path()
    }

    /// Runs SQL with `psql` over the Unix socket, in the database `postgres`. Returns the rows as lines, with `|` between
    /// columns.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        let folder = self.home.path().display();
        let port = self.port;
        let server = format!("host='{folder}' port={port} user=postgres dbname=postgres");
        psql(&server, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
