//! The configuration of the application, with the storage that `TEST_STORAGE_BACKEND` names.

use std::{any::Any, env, ffi::OsString, time::Duration};

use animal_store_adapters_postgres::{Migrations, PgEndpoint, PostgresSettings, api_key_store};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiToken, NewToken, Scopes, ports::ApiKeyStore,
};
use animal_store_server::{
    Config,
    config::{Sources, StorageConfig},
};
use animal_store_test_servers::PgDatabase;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::test_app::{OTHER_TOKEN, TOKEN};

/// Timeout of a storage that does not pass on a busy machine.
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

const FLAGS: [(&str, &str); 4] = [
    ("http.listen", "127.0.0.1:0"),
    ("http.workers", "2"),
    ("management.listen", "127.0.0.1:0"),
    ("shutdown.drain_delay", "0s"),
];

/// A new storage.
pub(crate) struct Backend {
    environment: Vec<(&'static str, OsString)>,
    /// The folder or the database, which is removed when this is dropped.
    _space: Box<dyn Any + Send + Sync>,
}

impl Backend {
    pub(crate) fn new() -> Self {
        let name = env::var_os("TEST_STORAGE_BACKEND").unwrap_or_else(|| "memory".into());
        let mut environment = vec![("ANIMAL_STORE_STORAGE__BACKEND", name.clone())];
        let tokens = (
            "ANIMAL_STORE_KEYS__MEMORY__TOKENS",
            format!("{TOKEN},{OTHER_TOKEN}").into(),
        );
        let space: Box<dyn Any + Send + Sync> = match name.to_str() {
            Some("memory") => {
                environment.push(tokens);
                Box::new(())
            }
            Some("sqlite") => {
                let folder = TempDir::new().expect("a folder");
                environment.push(tokens);
                environment.push((
                    "ANIMAL_STORE_STORAGE__SQLITE__PATH",
                    folder.path().join("store.db").into(),
                ));
                Box::new(folder)
            }
            Some("postgres") => {
                let database = PgDatabase::new();
                add_keys(database.url());
                environment.push(("ANIMAL_STORE_STORAGE__POSTGRES__URL", database.url().into()));
                Box::new(database)
            }
            _ => panic!(
                "TEST_STORAGE_BACKEND must be memory, sqlite or postgres, not {}",
                name.display()
            ),
        };
        Self {
            environment,
            _space: space,
        }
    }

    /// The configuration with this storage and these keys of it.
    pub(crate) fn config(&self, keys: &[(&str, &str)]) -> Config {
        let sources = Sources {
            file: None,
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.into(), value.clone()))
                .collect(),
            flags: FLAGS
                .iter()
                .chain(keys)
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        };
        let mut config = Config::load(&sources).expect("a valid configuration");
        // On a busy machine, a connection may wait for its first request.
        config.http.connections.head_timeout = Duration::from_secs(10);
        match &mut config.storage {
            StorageConfig::Sqlite(sqlite) => sqlite.settings.timeout = LONG_TIMEOUT,
            StorageConfig::Postgres(postgres) => postgres.settings.timeout = LONG_TIMEOUT,
            StorageConfig::Memory { .. } => {}
        }
        config
    }
}

/// Adds the API keys of the tests to a new database.
fn add_keys(url: &str) {
    let endpoint = PgEndpoint::parse(&url.into()).expect("a URL");
    let add = async {
        Migrations::new(endpoint.clone(), LONG_TIMEOUT)
            .run()
            .await
            .expect("the tables");
        let settings = PostgresSettings {
            timeout: LONG_TIMEOUT,
            ..PostgresSettings::default()
        };
        let store = api_key_store(endpoint, settings);
        for (id, token) in [("key-1", TOKEN), ("key-2", OTHER_TOKEN)] {
            let token = NewToken::new(&ApiToken::parse(token.into()).expect("a token"), None);
            let label = ApiKeyLabel::parse("test").expect("a label");
            let key = ApiKey {
                id: ApiKeyId::parse(id).expect("an id"),
                label,
                scopes: Scopes::ALL,
            };
            store
                .change(ApiKeyChange::Add(key, token), "test")
                .await
                .expect("added");
        }
    };
    Runtime::new().expect("a runtime").block_on(add);
}
