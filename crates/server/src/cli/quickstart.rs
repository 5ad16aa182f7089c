//! What a start says about its first API key, if API keys are in the file, or in memory and none is configured.
//!
//! A token is printed only on a terminal, or with `--print-key`: standard error can be a log that others read. Such a
//! start creates an API key if none was ever added, and prints two requests with it. A key in the file stays valid; a
//! key in memory ends with the process. Otherwise, the log says how to create a key. A key is printed after it was
//! stored, and before the directory of API keys starts, so that the printed requests work at once. If printing fails, the
//! key is revoked. A signal meanwhile leaves it: `keys list` shows it as `quickstart`.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    path::Path,
    sync::Arc,
};

use animal_store_adapter_kit::this_user;
use animal_store_adapters_cli::{
    keys::{audit, random_bits},
    quickstart::Quickstart,
};
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, ApiToken, NewToken, RevokeApiKey, Scopes,
    ports::{ApiKeyStore, StoreFailure},
};
use anyhow::ensure;

use super::{options::Options, stores::operator};
use crate::{
    backends::{Access, memory::MemoryApiKeysConfig},
    config::{ApiKeysConfig, Config},
};

/// Creates an API key if none was ever added, or logs how to create one. `options` are those of the program in commands
/// to paste, and `is_managed` says whether a service manager has started it. A key in memory is added to the
/// configuration.
///
/// # Errors
/// If the file has no API key and other machines can connect, if it cannot be used, or if the key cannot be printed.
pub(super) async fn run(
    config: &mut Config,
    address: SocketAddr,
    access: &mut Access,
    options: &Options,
    is_managed: bool,
) -> anyhow::Result<()> {
    let prints =
        options.print_key || (io::stderr().is_terminal() && config.listen.ip().is_loopback());
    let quickstart = prints.then(|| Quickstart {
        address,
        has_tls: config.tls.is_some(),
        public_url: config.http.public_url.as_ref().map(ToString::to_string),
    });
    let has_pets = config.stores.are_one();
    match &mut config.stores.api_keys {
        ApiKeysConfig::Sqlite(sqlite) => {
            let store = SqliteApiKeyStore::new(sqlite.open(access).await?);
            let start = FileStart {
                path: &sqlite.path,
                has_pets,
                listen: config.listen,
                program: program(options, &sqlite.path, is_managed),
                store: Arc::new(store),
                quickstart,
                is_managed,
            };
            start.run().await
        }
        ApiKeysConfig::Memory(memory) => run_in_memory(memory, quickstart).await,
        // The start does not wait for them: a connection that finds no key logs how to create one.
        ApiKeysConfig::Postgres(_) | ApiKeysConfig::Redis(_) => Ok(()),
    }
}

/// Adds a key if none is configured and it can be printed.
async fn run_in_memory(
    memory: &mut MemoryApiKeysConfig,
    quickstart: Option<Quickstart>,
) -> anyhow::Result<()> {
    if !memory.tokens.is_empty() {
        return Ok(());
    }
    let Some(quickstart) = quickstart else {
        tracing::warn!(
            "there is no API key: every request gets 401; set keys.memory.tokens and restart"
        );
        return Ok(());
    };
    let token = ApiToken::from_random(&random_bits()?);
    let notice = "No API key is configured: the key below is valid until the process ends.";
    quickstart.print(notice, Some(&token)).await?;
    memory.tokens.push(token.secret().clone());
    Ok(())
}

/// The start of a service whose API keys are in the file.
struct FileStart<'a> {
    path: &'a Path,
    /// Whether the file has the pets as well.
    has_pets: bool,
    /// The address in the configuration.
    listen: SocketAddr,
    /// The program in commands to paste.
    program: String,
    store: Arc<SqliteApiKeyStore>,
    /// `None`: nothing is printed.
    quickstart: Option<Quickstart>,
    is_managed: bool,
}

impl FileStart<'_> {
    async fn run(&self) -> anyhow::Result<()> {
        let Some(quickstart) = &self.quickstart else {
            return self.check_keys().await;
        };
        let token = ApiToken::from_random(&random_bits()?);
        if let Some(key) = self.add_first(&token).await? {
            audit(&key, &self.store_name(), "API key created");
            return self.print_or_revoke(quickstart, &key, &token).await;
        }
        self.check_keys().await?;
        let advice = format!("To create an API key: {}", self.create_command());
        quickstart.print(&self.notice(&advice), None).await
    }

    /// Returns the name of the store, as in the audit events of commands.
    fn store_name(&self) -> String {
        format!("sqlite {}", self.path.display())
    }

    /// Adds a key if none was ever added.
    async fn add_first(&self, token: &ApiToken) -> anyhow::Result<Option<ApiKey>> {
        let key = ApiKey {
            id: ApiKeyId::from_random(&random_bits()?),
            label: ApiKeyLabel::parse("quickstart")?,
            scopes: Scopes::ALL,
        };
        let stored = NewToken::new(token, None);
        let is_first = self
            .store
            .add_first(key.clone(), stored, &operator())
            .await?;
        Ok(is_first.then_some(key))
    }

    async fn print_or_revoke(
        &self,
        quickstart: &Quickstart,
        key: &ApiKey,
        token: &ApiToken,
    ) -> anyhow::Result<()> {
        let revoke = format!("{} keys revoke {}", self.program, key.id);
        let notice = self.notice(&format!(
            "The key below stays valid. To revoke it: {revoke}"
        ));
        let printed = quickstart.print(&notice, Some(token)).await;
        if printed.is_err() {
            RevokeApiKey::new(self.store.clone())
                .execute(&key.id, &operator())
                .await?;
            audit(key, &self.store_name(), "API key revoked");
        }
        printed
    }

    /// Logs what an operator has to do so that the file has valid keys.
    async fn check_keys(&self) -> anyhow::Result<()> {
        match self.store.list().await {
            Ok(keys) if keys.is_empty() => self.warn_of_no_key(),
            Ok(_) => Ok(()),
            // The other keys are valid.
            Err(StoreFailure::Corrupt(cause)) => {
                let command = format!("{} keys revoke ID", self.program);
                tracing::warn!(reason = %cause, command, "an API key is not valid: this command revokes it");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn warn_of_no_key(&self) -> anyhow::Result<()> {
        let listen = self.listen;
        let command = self.create_command();
        ensure!(
            self.is_managed || listen.ip().is_loopback(),
            "{} has no API key, and other machines can connect to {listen} (http.listen): create a key first, with \
             {command}",
            self.path.display()
        );
        tracing::warn!(
            command,
            "there is no API key: every request gets 401 until this command creates one"
        );
        Ok(())
    }

    fn create_command(&self) -> String {
        format!("{} keys create --label NAME", self.program)
    }

    fn notice(&self, advice: &str) -> String {
        let kept = if self.has_pets {
            "Pets and API keys"
        } else {
            "API keys"
        };
        format!("{kept} are kept in {}\n  {advice}", self.path.display())
    }
}

/// Returns the program with its options. Root runs the commands of a service manager's user, who owns the file.
fn program(options: &Options, file: &Path, is_managed: bool) -> String {
    let program = options.program(file);
    match this_user() {
        user if is_managed && user != "root" => {
            format!("runuser -u {} -- {program}", shell_words::quote(&user))
        }
        _ => program,
    }
}
