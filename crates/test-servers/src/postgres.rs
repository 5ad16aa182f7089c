use std::path::Path;

use crate::{Certificates, home::Home, port, postgres_data, programs, psql::psql, watched::Watched};

/// A PostgreSQL server of its own, whose data no power failure survives.
///
/// Its superuser is `postgres`. Over its Unix socket nobody needs a password.
pub struct PostgresServer {
    // It ends before its folder is removed.
    process: Option<Watched>,
    home: Home,
    options: Vec<String>,
    port: u16,
    certificates: Option<Certificates>,
}

impl PostgresServer {
    /// Starts one at its defaults.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one with these settings: `["max_connections=5"]`.
    pub fn with(settings: &[&str]) -> Self {
        Self::start_in(Home::new(), "host all all 127.0.0.1/32 trust", settings, None)
    }

    /// Starts one that offers TLS, and also takes connections without it.
    pub fn with_tls() -> Self {
        Self::start_encrypted("host all all 127.0.0.1/32 trust")
    }

    /// Starts one that refuses TCP connections without TLS.
    pub fn requiring_tls() -> Self {
        Self::start_encrypted("hostssl all all 127.0.0.1/32 trust")
    }

    /// Starts one whose superuser needs this password over TCP.
    pub fn with_password(password: &str) -> Self {
        let server = Self::start_in(Home::new(), "host all all 127.0.0.1/32 scram-sha-256", &[], None);
        server.sql("postgres", &format!("ALTER ROLE postgres PASSWORD '{}'", password.replace('\'', "''")));
        server
    }

    fn start_encrypted(access: &str) -> Self {
        let home = Home::new();
        let certificates = Certificates::make(home.path());
        home.make_private(&certificates.server_key);
        let certificate = format!("ssl_cert_file={}", certificates.server.display());
        let key = format!("ssl_key_file={}", certificates.server_key.display());
        Self::start_in(home, access, &["ssl=on", &certificate, &key], Some(certificates))
    }

    fn start_in(home: Home, access: &str, settings: &[&str], certificates: Option<Certificates>) -> Self {
        let access = home.write("pg_hba.conf", &format!("local all all trust\n{access}\n"));
        let folder = home.path().display();
        let mut options = vec!["-D".to_owned(), postgres_data::make(&home).display().to_string()];
        for setting in [&format!("hba_file={}", access.display()), &format!("unix_socket_directories={folder}")] {
            options.extend(["-c".to_owned(), setting.clone()]);
        }
        for setting in ["listen_addresses=127.0.0.1", "fsync=off"].iter().chain(settings) {
            options.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        let mut server = Self { process: None, home, options, port: 0, certificates };
        // Another process may take the free port first; then there is another one.
        for _ in 0..5 {
            server.port = port::listener().local_addr().expect("an address").port();
            if server.try_start().is_ok() {
                return server;
            }
        }
        panic!("PostgreSQL does not start: {}", server.try_start().expect_err("as before"));
    }

    fn try_start(&mut self) -> Result<(), String> {
        let port = ["-p".to_owned(), self.port.to_string()];
        let options = [self.options.as_slice(), &port].concat();
        let ready = "ready to accept connections";
        // At this signal it does not wait for anything.
        self.process = Some(Watched::start(&self.home, "QUIT", &programs::find("postgres"), &options, ready)?);
        Ok(())
    }

    /// How to connect to a database of it over TCP, without a password.
    pub fn url(&self, database: &str) -> String {
        let host = if self.certificates.is_some() { "localhost" } else { "127.0.0.1" };
        format!("postgres://postgres@{host}:{}/{database}", self.port)
    }

    /// Its port, and the number in the name of its Unix socket.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where its Unix socket is.
    pub fn socket_directory(&self) -> &Path {
        self.home.path()
    }

    /// What it takes to speak TLS with it.
    pub const fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("a server that was started with TLS")
    }

    /// Runs SQL by `psql`, over the Unix socket, and returns what that printed: rows in lines, columns with `|` between
    /// them.
    #[track_caller]
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let (folder, port) = (self.home.path().display(), self.port);
        psql(&format!("host='{folder}' port={port} user=postgres dbname='{database}'"), sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Ends it at once, as a crash does.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it again, at the same address, with what was committed.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "it was stopped");
        self.try_start().expect("it starts again");
    }

    /// Lets it stand still until [`resume`](Self::resume): connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.as_ref().expect("it runs").signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.as_ref().expect("it runs").signal("CONT");
    }
}
