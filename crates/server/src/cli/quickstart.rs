//! What a start says about its first API key, if API keys are in the file, or in memory and none is configured.
//!
//! A token is printed only on a terminal, or with `--print-key`: standard error can be a log that others read. Such a
//! start creates an API key if none was ever added, and prints two requests with it. A key in the file stays valid; a
//! key in memory ends with the process. Otherwise, the log says how to create a key. A start that fails leaves no key
//! in the file that was not printed.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    sync::Arc,
};

use animal_store_adapters_http::{CurrentTlsIdentity, TlsIdentity};
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiKeyRefusal, ApiToken, NewToken, Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use anyhow::{Context, ensure};
use nix::unistd::{User, geteuid};
use secrecy::{ExposeSecret, SecretString};
use tokio::task::spawn_blocking;

use super::{
    keys::{audit, random_bits},
    options::{Options, quoted},
};
use crate::{
    config::{Config, KeysConfig, StorageConfig},
    wiring::{self, SharedFile},
};

/// How the printed requests trust a certificate.
const TLS_NOTICE: &str = "\n  If your own authority signed the certificate, curl needs: --cacert FILE";

/// What a start prints, and the API key that it created.
pub(super) struct Quickstart {
    prints: bool,
    /// What the user has to know. `None`: nothing is printed.
    notice: Option<String>,
    tls: Option<Arc<TlsIdentity>>,
    token: Option<SecretString>,
    /// The new key and its store, until the token is printed.
    unprinted: Option<(ApiKey, Arc<SqliteApiKeyStore>)>,
}

impl Quickstart {
    pub(super) fn new(config: &Config, options: &Options) -> Self {
        let prints = options.print_key || (io::stderr().is_terminal() && config.listen.ip().is_loopback());
        let tls = config.http.tls.as_ref().map(CurrentTlsIdentity::get);
        Self { prints, notice: None, tls, token: None, unprinted: None }
    }

    /// Creates an API key if none was ever added, or logs how to create one. `options` are those of the program in
    /// commands to paste, and `is_managed` says whether a service manager has started it.
    ///
    /// # Errors
    /// If the file has no API key and other machines can connect, or if it cannot be used.
    pub(super) async fn prepare(
        &mut self,
        config: &mut Config,
        file: &mut SharedFile,
        options: &Options,
        is_managed: bool,
    ) -> anyhow::Result<()> {
        let sqlite = match &mut config.keys {
            KeysConfig::Sqlite(sqlite) => sqlite,
            KeysConfig::Memory { tokens } if tokens.is_empty() && self.prints => {
                let token = ApiToken::from_random(&random_bits()?).secret().clone();
                tokens.push(token.clone());
                self.token = Some(token);
                self.notice = Some("No API key is configured: the key below is valid until the process ends.".into());
                return Ok(());
            }
            KeysConfig::Memory { tokens } => {
                if tokens.is_empty() {
                    tracing::warn!("there is no API key: every request gets 401; set keys.memory.tokens and restart");
                }
                return Ok(());
            }
            // The start does not wait for Redis: each connection that finds no key in it logs how to create one.
            KeysConfig::Redis(_) => return Ok(()),
        };
        let kept = if let StorageConfig::Sqlite(_) = config.storage { "Pets and API keys" } else { "API keys" };
        let path = sqlite.path.display().to_string();
        let program = if is_managed { as_service_user() } else { String::new() } + &options.program(&sqlite.path);
        let mut advice = format!("To create an API key: {program} keys create --label NAME");
        let store = wiring::sqlite_api_key_store(sqlite, file).await?;
        match store.list().await {
            Ok(keys) if keys.is_empty() => {
                if self.prints
                    && let Some(id) = self.create_first_key(store).await?
                {
                    advice = format!("The key below stays valid. To revoke it: {program} keys revoke {id}");
                } else {
                    let listen = config.listen;
                    ensure!(
                        is_managed || listen.ip().is_loopback(),
                        "{path} has no API key, and other machines can connect to {listen} (http.listen): create a key \
                         first, with {program} keys create --label NAME"
                    );
                    let command = format!("{program} keys create --label NAME");
                    tracing::warn!(
                        command,
                        "there is no API key: every request gets 401 until this command creates one"
                    );
                }
            }
            Ok(_) => {}
            // The other keys are valid.
            Err(StoreFailure::Corrupt(cause)) => {
                let command = format!("{program} keys revoke ID");
                tracing::warn!(reason = %cause, command, "an API key is not valid: this command revokes it");
            }
            Err(error) => return Err(error.into()),
        }
        self.notice = self.prints.then(|| format!("{kept} are kept in {path}\n  {advice}"));
        Ok(())
    }

    /// Returns `None` if the file had keys before, or if another process has just added the first one.
    async fn create_first_key(&mut self, store: Arc<SqliteApiKeyStore>) -> anyhow::Result<Option<ApiKeyId>> {
        let id = ApiKeyId::from_random(&random_bits()?);
        let key = ApiKey { id: id.clone(), label: ApiKeyLabel::parse("quickstart")?, scopes: Scopes::ALL };
        let token = ApiToken::from_random(&random_bits()?);
        // Before the key is added: an addition without a confirmation is revoked as well.
        self.unprinted = Some((key.clone(), Arc::clone(&store)));
        if !store.add_first(key.clone(), NewToken::new(&token, None)).await? {
            self.unprinted = None;
            return Ok(None);
        }
        audit(&key, "API key created", None);
        self.token = Some(token.secret().clone());
        Ok(Some(id))
    }

    /// Prints the notice, with the token in two requests to paste and the address of the API explorer. Waits until
    /// standard error is read.
    pub(super) async fn print(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let Some(text) = self.text(address) else { return Ok(()) };
        // If the wait ends early, the token may have been read.
        let unprinted = self.unprinted.take();
        let written = spawn_blocking(move || io::stderr().write_all(text.as_bytes())).await?;
        if written.is_err() {
            self.unprinted = unprinted;
        }
        written.context("the API key cannot be printed on standard error")
    }

    fn text(&mut self, address: SocketAddr) -> Option<String> {
        let notice = self.notice.take()?;
        let (scheme, tls_notice) = if self.tls.is_some() { ("https", TLS_NOTICE) } else { ("http", "") };
        let listens = format!("{scheme}://{address}");
        // curl compares the certificate with the name in the URL.
        let (options, url) = match self.tls.as_ref().and_then(|tls| tls.dns_name()) {
            None => (String::new(), listens.clone()),
            Some(name) => (format!(" --connect-to '::{address}'"), format!("{scheme}://{name}:{}", address.port())),
        };
        let mut text = format!("\n  The animal store listens on {listens}.\n  {notice}{tls_notice}\n\n");
        if let Some(token) = self.token.take() {
            let curl = format!("curl -i{options} -H 'Authorization: Bearer {}'", token.expose_secret());
            let written = write!(
                text,
                "  {curl} -d '{{\"name\":\"Rex\",\"categoryId\":1,\"status\":\"available\"}}' \
                 -H 'Content-Type: application/json' '{url}/v1/pets'\n\
                 \x20 {curl} '{url}/v1/pets?status=available'\n\n\
                 \x20 In a browser, with the same key: {listens}/docs\n\n"
            );
            written.expect("a string can be written");
        }
        Some(text)
    }

    /// Revokes the new key if its token was not printed.
    pub(super) async fn withdraw(self) {
        let Some((key, store)) = self.unprinted else { return };
        match store.change(ApiKeyChange::Revoke(key.id.clone())).await {
            Ok(_) => audit(&key, "API key revoked", None),
            Err(ApiKeyChangeError::Refused(ApiKeyRefusal::UnknownId(_))) => {}
            Err(error) => {
                let reason = format!("{:#}", anyhow::Error::new(error));
                tracing::warn!(api_key = key.id.as_str(), reason, "the API key was not printed and is not revoked");
            }
        }
    }
}

/// The start of a command of root that runs as the user of this process, who owns the file.
fn as_service_user() -> String {
    let user = geteuid();
    if user.is_root() {
        return String::new();
    }
    let name = User::from_uid(user).ok().flatten().map_or_else(|| user.to_string(), |user| user.name);
    format!("runuser -u {} -- ", quoted(&name))
}
