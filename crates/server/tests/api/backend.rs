//! The configuration of the application, with the storage that `TEST_STORAGE_BACKEND` names.

use std::{any::Any, env, ffi::OsString, time::Duration};

use animal_store_server::{
    Config,
    config::{Sources, StorageConfig},
};
use animal_store_test_servers::PgDatabase;
use tempfile::TempDir;

use crate::test_app::{OTHER_TOKEN, TOKEN};

/// Timeout that does not pass on a busy machine.
const LONG_TIMEOUT: Duration = Duration::from_mins(1);

const FLAGS: [(&str, &str); 4] = [
    ("http.listen", "127.0.0.1:0"),
    ("http.workers", "2"),
    ("management.listen", "127.0.0.1:0"),
    ("shutdown.drain_delay", "0s"),
];

/// A new storage.
pub(crate) struct Backend {
    environment: Vec<(OsString, OsString)>,
    /// The folder or the database, which is removed when this is dropped.
    _space: Box<dyn Any + Send + Sync>,
}

impl Backend {
    pub(crate) fn new() -> Self {
        let name = env::var_os("TEST_STORAGE_BACKEND").unwrap_or_else(|| "memory".into());
        let name = name.to_str().expect("UTF-8");
        let mut environment = Vec::new();
        let mut set = |name: &str, value: &str| {
            let variable = format!("ANIMAL_STORE_{name}");
            environment.push((variable.into(), value.into()));
        };
        set("STORAGE__BACKEND", name);
        set("KEYS__MEMORY__TOKENS", &format!("{TOKEN},{OTHER_TOKEN}"));
        let space: Box<dyn Any + Send + Sync> = match name {
            "memory" => Box::new(()),
            "sqlite" => {
                let folder = TempDir::new().expect("a folder");
                let path = folder.path().join("store.db");
                set("STORAGE__SQLITE__PATH", path.to_str().expect("UTF-8"));
                Box::new(folder)
            }
            "postgres" => {
                let database = PgDatabase::new();
                set("STORAGE__POSTGRES__URL", database.url());
                Box::new(database)
            }
            _ => panic!("TEST_STORAGE_BACKEND must be memory, sqlite or postgres, not {name}"),
        };
        Self {
            environment,
            _space: space,
        }
    }

    /// The configuration with this storage and these keys of it.
    pub(crate) fn config(&self, keys: &[(&str, &str)]) -> Config {
        let flags = FLAGS.iter().chain(keys);
        let flags = flags.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let sources = Sources {
            file: None,
            environment: self.environment.clone(),
            flags: flags.collect(),
        };
        let mut config = Config::load(&sources).expect("a valid configuration");
        // On a busy machine, a connection may wait for its first request.
        config.http.connections.head_timeout = LONG_TIMEOUT;
        match &mut config.stores.pets {
            StorageConfig::Sqlite(sqlite) => sqlite.settings.timeout = LONG_TIMEOUT,
            StorageConfig::Postgres(postgres) => postgres.settings.timeout = LONG_TIMEOUT,
            StorageConfig::Memory { .. } => {}
        }
        config
    }
}
