use std::path::Path;

use crate::{
    Certificates, home::Home, postgres_data, programs, psql::psql, server::Server, watched::Watched,
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
        Self::start_in(
            Home::new(),
            "host all all 127.0.0.1/32 trust",
            settings,
            None,
        )
    }

    /// Starts a server that accepts connections with and without TLS.
    pub fn with_tls() -> Self {
        let home = Home::new();
        let certificates = Certificates::make(home.path());
        home.make_private(&certificates.server_key);
        let certificate = format!("ssl_cert_file={}", certificates.server.display());
        let key = format!("ssl_key_file={}", certificates.server_key.display());
        let settings = ["ssl=on", &certificate, &key];
        Self::start_in(
            home,
            "host all all 127.0.0.1/32 trust",
            &settings,
            Some(certificates),
        )
    }

    /// Starts a server that requires this password over TCP.
    pub fn with_password(password: &str) -> Self {
        let (access, settings) = (
            "host all all 127.0.0.1/32 scram-sha-256",
            ["password_encryption=scram-sha-256"],
        );
        let server = Self::start_in(Home::new(), access, &settings, None);
        server.sql(
            "postgres",
            &format!("ALTER ROLE postgres PASSWORD '{password}'"),
        );
        server
    }

    /// Starts the stopped server again as a standby, which has no primary.
    pub fn start_as_standby(&mut self) {
        self.home.write("data/standby.signal", "");
        self.start_again();
    }

    fn start_in(
        home: Home,
        access: &str,
        settings: &[&str],
        certificates: Option<Certificates>,
    ) -> Self {
        let access = home.write("pg_hba.conf", &format!("local all all trust\n{access}\n"));
        let folder = home.path().display();
        let mut options = vec![
            "-D".to_owned(),
            postgres_data::make(&home).display().to_string(),
        ];
        for setting in [
            &format!("hba_file={}", access.display()),
            &format!("unix_socket_directories={folder}"),
        ] {
            options.extend(["-c".to_owned(), setting.clone()]);
        }
        for setting in ["listen_addresses=127.0.0.1", "fsync=off"]
            .iter()
            .chain(settings)
        {
            options.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        Self::start_by(Self::run, home, options, certificates)
    }

    fn run(&self) -> Result<Watched, String> {
        let port = ["-p".to_owned(), self.port.to_string()];
        let options = [self.options.as_slice(), &port].concat();
        let ready = "ready to accept";
        // At this signal the server ends at once.
        Watched::start(
            &self.home,
            "QUIT",
            &programs::find("postgres"),
            &options,
            ready,
        )
    }

    /// The URL of a database over TCP, without a password.
    pub fn url(&self, database: &str) -> String {
        let host = if self.certificates.is_some() {
            "localhost"
        } else {
            "127.0.0.1"
        };
        format!("postgres://postgres@{host}:{}/{database}", self.port)
    }

    /// The folder of the Unix socket.
    pub fn socket_directory(&self) -> &Path {
        self.home.path()
    }

    /// Runs SQL with `psql` over the Unix socket. Returns the rows as lines, with `|` between columns.
    #[track_caller]
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let (folder, port) = (self.home.path().display(), self.port);
        psql(
            &format!("host='{folder}' port={port} user=postgres dbname='{database}'"),
            sql,
        )
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
