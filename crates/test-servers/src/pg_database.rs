use std::{env, sync::LazyLock};

use url::Url;

use crate::{PostgresServer, port::random, psql::psql};

/// The server for all tests of this process, each of which may have a pool of connections.
static SERVER: LazyLock<PostgresServer> =
    LazyLock::new(|| PostgresServer::with(&["max_connections=300"]));

/// A PostgreSQL database for one test: in the server of `TEST_POSTGRES_URL`, otherwise in a server that the tests of
/// this process share.
pub struct PgDatabase {
    name: String,
    url: String,
    /// The URL for dropping it, unless the server ends with this process.
    dropped_from: Option<String>,
}

impl PgDatabase {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::encoded("UTF8")
    }

    /// Creates an empty database with this encoding.
    pub fn encoded(encoding: &str) -> Self {
        let options = match encoding {
            "UTF8" => "ENCODING 'UTF8'".to_owned(),
            encoding => format!("ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"),
        };
        let running = env::var_os("TEST_POSTGRES_URL");
        let server = match &running {
            Some(url) => with_database(url.to_str().expect("UTF-8"), "postgres"),
            None => SERVER.url(),
        };
        let name = format!("test_{}", random());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 {options}");
        psql(&server, &create).expect("a database");
        Self {
            url: with_database(&server, &name),
            name,
            dropped_from: running.map(|_| server),
        }
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of the database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates a user without permissions.
    #[track_caller]
    pub fn user(&self) -> PgUser {
        let name = format!("user_of_{}", self.name);
        self.sql(&format!("CREATE ROLE {name} LOGIN"));
        let server = self.url.split_once('@').expect("the URL has a user").1;
        PgUser {
            url: format!("postgres://{name}@{server}"),
            name,
            database: self.url.clone(),
        }
    }

    /// Runs SQL with `psql`. Returns the rows as lines, with `|` between columns.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        psql(&self.url, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

impl Default for PgDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PgDatabase {
    fn drop(&mut self) {
        if let Some(server) = &self.dropped_from {
            // The server may have been stopped.
            let _ = psql(server, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

/// A user of a database, who is removed when this is dropped.
pub struct PgUser {
    /// The name of the user.
    pub name: String,
    /// The URL of the database, with this user.
    pub url: String,
    database: String,
}

impl Drop for PgUser {
    fn drop(&mut self) {
        // The server may have been stopped.
        let _ = psql(
            &self.database,
            &format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name),
        );
    }
}

/// Replaces the database of a URL.
fn with_database(url: &str, name: &str) -> String {
    let mut url = Url::parse(url).expect("a URL");
    url.set_path(name);
    url.to_string()
}
