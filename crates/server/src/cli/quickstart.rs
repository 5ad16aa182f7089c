//! The quickstart: what a start prints about its API key and its file, on standard error and never in the log.
//!
//! The first start creates an API key and prints two requests with it. A key in the file stays valid; a key in memory
//! ends with the process. Later starts print where the data is, and create no key, even if every key was revoked. A
//! start that fails leaves no key in the file that was not printed. If API keys are configured or in Redis, nothing is
//! printed.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    sync::Arc,
};

use animal_store_adapters_http::TlsIdentity;
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiKeyRefusal, ApiToken, NewToken, Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use anyhow::{Context, ensure};
use secrecy::{ExposeSecret, SecretString};

use super::{keys::audit, options::Options, random::random_bits};
use crate::{
    config::{Config, KeysConfig, StorageConfig},
    wiring::{self, SharedFile},
};

/// How the printed requests trust a certificate.
const TLS_NOTICE: &str = "\nIf your own authority signed the certificate, curl needs: --cacert FILE";

/// What a start prints, and the API key that it created.
#[derive(Default)]
pub(super) struct Quickstart {
    /// What the user has to know. `None`: nothing is printed.
    notice: Option<String>,
    tls: Option<Arc<TlsIdentity>>,
    token: Option<SecretString>,
    /// The new key and its store, until the token is printed.
    unprinted: Option<(ApiKey, Arc<dyn ApiKeyStore>)>,
}

impl Quickstart {
    /// Creates an API key if none was ever added. `options` are those of the program in commands to paste.
    ///
    /// # Errors
    /// If the file has no API key and other machines can connect, or if the key cannot be created.
    pub(super) async fn prepare(
        &mut self,
        config: &mut Config,
        file: &mut SharedFile,
        options: &Options,
    ) -> anyhow::Result<()> {
        self.tls = config.http.tls.as_ref().map(|tls| tls.identity.get());
        if let KeysConfig::Memory { tokens } = &mut config.keys {
            if tokens.is_empty() {
                let token = ApiToken::from_random(&random_bits()?).secret().clone();
                tokens.push(token.clone());
                self.token = Some(token);
                self.notice = Some("No API key is configured: the key below is valid until the process ends.".into());
            }
            return Ok(());
        }
        let KeysConfig::Sqlite(sqlite) = &config.keys else { return Ok(()) };
        let (path, program) = (sqlite.path.display(), options.program(&sqlite.path));
        let kept = if let StorageConfig::Sqlite(_) = config.storage { "Pets and API keys" } else { "API keys" };
        let store = wiring::sqlite_api_key_store(sqlite, file).await?;
        let command = match store.list().await {
            Ok(keys) if keys.is_empty() => {
                let listen = config.http.listen;
                ensure!(
                    listen.ip().is_loopback(),
                    "{path} has no API key, and other machines can connect to {listen} (http.listen): create a key \
                     first, with {program} keys create --label NAME"
                );
                match self.create_first_key(store).await? {
                    Some(id) => format!("The key below stays valid. To revoke it: {program} keys revoke {id}"),
                    None => format!("To create an API key: {program} keys create --label NAME"),
                }
            }
            Ok(_) => format!("To create another API key: {program} keys create --label NAME"),
            // The other keys are valid.
            Err(StoreFailure::Corrupt(cause)) => {
                format!("An API key is not valid: {cause}\nTo revoke it: {program} keys revoke ID")
            }
            Err(error) => return Err(error.into()),
        };
        self.notice = Some(format!("{kept} are kept in {path}\n{command}"));
        Ok(())
    }

    /// Returns `None` if the file had keys before, or if another process has just added the first one.
    async fn create_first_key(&mut self, store: Arc<SqliteApiKeyStore>) -> anyhow::Result<Option<ApiKeyId>> {
        let id = ApiKeyId::from_random(&random_bits()?);
        let key = ApiKey { id: id.clone(), label: ApiKeyLabel::parse("quickstart")?, scopes: Scopes::ALL };
        let token = ApiToken::from_random(&random_bits()?);
        // Before the key is added: an addition without a confirmation is revoked as well.
        self.unprinted = Some((key.clone(), store.clone()));
        if !store.add_first(key.clone(), NewToken::new(&token, None)).await? {
            self.unprinted = None;
            return Ok(None);
        }
        audit(&key, "API key created");
        self.token = Some(token.secret().clone());
        Ok(Some(id))
    }

    /// Prints the notice, with the token in two requests to paste and the address of the API explorer. Waits until
    /// standard error is read.
    pub(super) async fn print(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let Some(notice) = self.notice.take() else { return Ok(()) };
        let token = self.token.take();
        // If the wait ends early, the token may have been read.
        let unprinted = self.unprinted.take();
        let tls = self.tls.take();
        let notice = if tls.is_some() { notice + TLS_NOTICE } else { notice };
        let written =
            tokio::task::spawn_blocking(move || write(address, tls.as_deref(), &notice, token.as_ref())).await?;
        if written.is_err() {
            self.unprinted = unprinted;
        }
        written.context("the API key cannot be printed on standard error")
    }

    /// Revokes the new key if its token was not printed.
    pub(super) async fn withdraw(self) {
        let Some((key, store)) = self.unprinted else { return };
        match store.change(ApiKeyChange::Revoke(key.id.clone())).await {
            Ok(_) => audit(&key, "API key revoked"),
            Err(ApiKeyChangeError::Refused(ApiKeyRefusal::UnknownId(_))) => {}
            Err(error) => {
                let reason = format!("{:#}", anyhow::Error::new(error));
                tracing::warn!(api_key = key.id.as_str(), reason, "the API key was not printed and is not revoked");
            }
        }
    }
}

fn write(address: SocketAddr, tls: Option<&TlsIdentity>, notice: &str, token: Option<&SecretString>) -> io::Result<()> {
    let mut stderr = io::stderr();
    let (margin, blank) = if stderr.is_terminal() { ("  ", "\n") } else { ("", "") };
    let notice = notice.replace('\n', &format!("\n{margin}"));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listens = format!("{scheme}://{address}");
    // curl compares the certificate with the name in the URL.
    let name = tls.and_then(TlsIdentity::dns_name);
    let (options, url) = match name {
        None => (String::new(), listens.clone()),
        Some(name) => (format!(" --connect-to '::{address}'"), format!("{scheme}://{name}:{}", address.port())),
    };
    let requests = token.map_or_else(String::new, |token| {
        let curl = format!("curl -i{options} -H 'Authorization: Bearer {}'", token.expose_secret());
        format!(
            "{margin}{curl} -d '{{\"name\":\"Rex\",\"categoryId\":1,\"status\":\"available\"}}' \
             -H 'Content-Type: application/json' '{url}/v1/pets'\n\
             {margin}{curl} '{url}/v1/pets?status=available'\n\
             {blank}{margin}In a browser, with the same key: {listens}/docs\n{blank}"
        )
    });
    let text = format!("{blank}{margin}The animal store listens on {listens}.\n{margin}{notice}\n{blank}{requests}");
    stderr.write_all(text.as_bytes())
}
