//! What a start says about its first API key, if API keys are in the file, or in memory and none is configured.
//!
//! A token is printed only on a terminal, or with `--print-key`: standard error can be a log that others read. Such a
//! start creates an API key if none was ever added, and prints two requests with it. A key in the file stays valid; a
//! key in memory ends with the process. Otherwise, the log says how to create a key. A key is printed after it was
//! stored, and before the directory of API keys starts, so that the printed requests work at once. A key that cannot be
//! printed is revoked.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
};

use animal_store_adapter_kit::this_user;
use animal_store_adapters_http::ApiSettings;
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiToken, NewToken, Scopes,
    ports::{ApiKeyStore, StoreFailure},
};
use anyhow::{Context, ensure};
use secrecy::{ExposeSecret, SecretString};
use tokio::task::spawn_blocking;

use super::{
    keys::{actor, audit, random_bits},
    options::Options,
};
use crate::{
    config::{Config, KeysConfig, StorageConfig},
    wiring::SharedFile,
};

/// How the printed requests trust a certificate.
const TLS_NOTICE: &str = "\n  The URL needs a name of the certificate. If your own authority signed it, curl needs: --cacert FILE";

/// Creates an API key if none was ever added, or logs how to create one. `options` are those of the program in commands
/// to paste, and `is_managed` says whether a service manager has started it. Waits until standard error is read.
///
/// # Errors
/// If the file has no API key and other machines can connect, if it cannot be used, or if the key cannot be printed.
pub(super) async fn run(
    config: &mut Config,
    address: SocketAddr,
    file: &mut SharedFile,
    options: &Options,
    is_managed: bool,
) -> anyhow::Result<()> {
    let Config {
        listen,
        http,
        storage,
        keys,
        ..
    } = config;
    let prints = options.print_key || (io::stderr().is_terminal() && listen.ip().is_loopback());
    let sqlite = match keys {
        KeysConfig::Sqlite(sqlite) => sqlite,
        KeysConfig::Memory { tokens } if tokens.is_empty() && prints => {
            let token = ApiToken::from_random(&random_bits()?).secret().clone();
            let notice = "No API key is configured: the key below is valid until the process ends.";
            print(text(http, address, notice, Some(&token))).await?;
            tokens.push(token);
            return Ok(());
        }
        KeysConfig::Memory { tokens } => {
            if tokens.is_empty() {
                tracing::warn!(
                    "there is no API key: every request gets 401; set keys.memory.tokens and restart"
                );
            }
            return Ok(());
        }
        // The start does not wait for them: a connection that finds no key logs how to create one.
        KeysConfig::Postgres(_) | KeysConfig::Redis(_) => return Ok(()),
    };
    let path = sqlite.path.display();
    let program = if is_managed {
        as_service_user()
    } else {
        String::new()
    } + &options.program(&sqlite.path);
    let kept = if let StorageConfig::Sqlite(_) = storage {
        "Pets and API keys"
    } else {
        "API keys"
    };
    let notice = |advice: &str| format!("{kept} are kept in {path}\n  {advice}");
    let store = SqliteApiKeyStore::new(file.open(sqlite).await?);
    let (id, token) = (
        ApiKeyId::from_random(&random_bits()?),
        ApiToken::from_random(&random_bits()?),
    );
    let key = ApiKey {
        id: id.clone(),
        label: ApiKeyLabel::parse("quickstart")?,
        scopes: Scopes::ALL,
    };
    if prints
        && store
            .add_first(key.clone(), NewToken::new(&token, None), &actor())
            .await?
    {
        audit(&key, "API key created", None);
        let notice = notice(&format!(
            "The key below stays valid. To revoke it: {program} keys revoke {id}"
        ));
        let printed = print(text(http, address, &notice, Some(token.secret()))).await;
        if printed.is_err() {
            store.change(ApiKeyChange::Revoke(id), &actor()).await?;
            audit(&key, "API key revoked", None);
        }
        return printed;
    }
    let command = format!("{program} keys create --label NAME");
    match store.list().await {
        Ok(keys) if keys.is_empty() => {
            ensure!(
                is_managed || listen.ip().is_loopback(),
                "{path} has no API key, and other machines can connect to {listen} (http.listen): create a key first, \
                 with {command}"
            );
            tracing::warn!(
                command,
                "there is no API key: every request gets 401 until this command creates one"
            );
        }
        Ok(_) => {}
        // The other keys are valid.
        Err(StoreFailure::Corrupt(cause)) => {
            let command = format!("{program} keys revoke ID");
            tracing::warn!(reason = %cause, command, "an API key is not valid: this command revokes it");
        }
        Err(error) => return Err(error.into()),
    }
    if prints {
        let notice = notice(&format!("To create an API key: {command}"));
        print(text(http, address, &notice, None)).await?;
    }
    Ok(())
}

/// Returns the notice, with the token in two requests to paste and the address of the API explorer.
fn text(
    http: &ApiSettings,
    address: SocketAddr,
    notice: &str,
    token: Option<&SecretString>,
) -> String {
    let (scheme, tls_notice) = if http.tls.is_some() {
        ("https", TLS_NOTICE)
    } else {
        ("http", "")
    };
    let listens = format!("{scheme}://{address}");
    let text = format!("\n  The animal store listens on {listens}.\n  {notice}{tls_notice}\n\n");
    let Some(token) = token else { return text };
    let is_local = http.tls.is_some() && address.ip().is_loopback();
    let url = if let Some(public_url) = &http.public_url {
        public_url.to_string()
    } else if is_local {
        format!("https://localhost:{}/v1", address.port())
    } else {
        format!("{listens}/v1")
    };
    let curl = "curl -i -H @-";
    // On standard input: the arguments of a process can be read by every user of the machine.
    let token = format!("<<<'Authorization: Bearer {}'", token.expose_secret());
    let pet = r#"{"name":"Rex","categoryId":1,"status":"available"}"#;
    format!(
        "{text}  {curl} -d '{pet}' -H 'Content-Type: application/json' '{url}/pets' {token}\n  \
         {curl} '{url}/pets?status=available' {token}\n\n  In a browser, with the same key: {listens}/docs\n\n"
    )
}

async fn print(text: String) -> anyhow::Result<()> {
    let written = spawn_blocking(move || io::stderr().write_all(text.as_bytes())).await?;
    written.context("the API key cannot be printed on standard error")
}

/// The start of a command of root that runs as the user of this process, who owns the file.
fn as_service_user() -> String {
    match this_user() {
        root if root == "root" => String::new(),
        user => format!("runuser -u {} -- ", shell_words::quote(&user)),
    }
}
