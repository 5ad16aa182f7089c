use crate::{home::Home, port, watched::Watched};

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
        let (process, port) = port::start_on_free_port("PgBouncer", |port| {
            let settings = format!(
                "[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = {mode}\ndefault_pool_size = {pool_size}\n"
            );
            let settings = home.write("pgbouncer.ini", &settings).display().to_string();
            let process = Watched::start(&home, "KILL", "pgbouncer", &[settings], "process up")?;
            Ok((process, port))
        });
        Self {
            _process: process,
            _home: home,
            port,
        }
    }

    /// The URL of a database of the server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}
