//! What a start under a service manager logs in place of the quickstart. It creates no API key and prints nothing:
//! standard error is in a journal, which other users may read.

use animal_store_app::ports::{ApiKeyStore, StoreFailure};
use nix::unistd::{User, geteuid};

use super::options::{Options, quoted};
use crate::{
    config::{Config, KeysConfig},
    wiring::{self, SharedFile},
};

/// Warns if no request can be authenticated, with the command that creates an API key.
///
/// # Errors
/// If the file cannot be used.
pub(super) async fn warn(config: &Config, file: &mut SharedFile, options: &Options) -> anyhow::Result<()> {
    let sqlite = match &config.keys {
        KeysConfig::Sqlite(sqlite) => sqlite,
        KeysConfig::Memory { tokens } if tokens.is_empty() => {
            tracing::warn!("there is no API key: every request gets 401; set keys.memory.tokens and restart");
            return Ok(());
        }
        // The start does not wait for Redis: each connection that finds no key in it logs how to create one.
        KeysConfig::Memory { .. } | KeysConfig::Redis(_) => return Ok(()),
    };
    let program = options.program(&sqlite.path);
    match wiring::sqlite_api_key_store(sqlite, file).await?.list().await {
        Ok(keys) if keys.is_empty() => {
            let command = format!("{}{program} keys create --label NAME", as_service_user());
            tracing::warn!(command, "there is no API key: every request gets 401 until this command creates one");
        }
        Ok(_) => {}
        // The other keys are valid.
        Err(StoreFailure::Corrupt(cause)) => {
            let command = format!("{}{program} keys revoke ID", as_service_user());
            tracing::warn!(reason = %cause, command, "an API key is not valid: this command revokes it");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
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
