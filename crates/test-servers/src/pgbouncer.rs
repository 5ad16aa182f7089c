use crate::{home::Home, port, programs, watched::Watched};

/// A PgBouncer.
pub struct PgBouncer {
    // Dropped before the folder is removed.
    _process: Watched,
    _home: Home,
    port: u16,
}

impl PgBouncer {
    /// Starts a PgBouncer for the server at this port of 127.0.0.1, in this mode (`session`, `transaction`), with this
    /// number of connections per database.
    pub fn start(server_port: u16, mode: &str, pool_size: u32) -> Self {
        let home = Home::new();
        let mut log = String::new();
        // Another process may take the free port first.
        for _ in 0..5 {
            let port = port::listener().local_addr().expect("an address").port();
            let settings = format!(
                "[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = {mode}\ndefault_pool_size = {pool_size}\n"
            );
            let settings = home.write("pgbouncer.ini", &settings).display().to_string();
            match Watched::start(&home, "KILL", &programs::find("pgbouncer"), &[settings], "process up") {
                Ok(process) => return Self { _process: process, _home: home, port },
                Err(text) => log = text,
            }
        }
        panic!("PgBouncer does not start; is it installed? {log}");
    }

    /// The URL of a database of the server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}
