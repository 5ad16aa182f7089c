//! `animal-store keys`: prints a token or the list on standard output, and the audit log on standard error.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    ops::RangeInclusive,
    os::{fd::AsFd, unix::fs::MetadataExt},
    time::Duration,
};

use animal_store_adapter_kit::this_user;
use animal_store_adapters_sqlite::FileUse;
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiKeyRefusal, ApiToken, AuditEntry, NewToken,
    Scope,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use anyhow::{Context, anyhow, ensure};
use clap::{Args, Subcommand};
use nix::{
    errno::Errno,
    unistd::{gethostname, write},
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    command::{check_log, start},
    key_list,
};
use crate::{
    config::{KeysConfig, Sources, duration},
    wiring::{SharedFile, api_key_store},
};

/// 100 years.
const MAX: Duration = Duration::from_hours(876_600);
const LIFETIME: RangeInclusive<Duration> = Duration::from_secs(1)..=MAX;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Creates an API key and prints its token, which cannot be shown again.
    Create(CreateArgs),
    /// Lists the API keys with a row per token; the tokens themselves are not stored.
    List {
        /// Prints a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Lists the recorded changes of the API keys: the last 10,000 of a year, oldest first.
    Log {
        /// Prints a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Revokes every token of an API key at once.
    Revoke {
        /// Id of the key.
        id: String,
    },
    /// Gives an API key a new token and prints it; the old token stays valid for 24 hours unless --grace is shorter.
    ///
    /// The new token cannot be shown again. The output says when the old token ends. If the old token has leaked, add
    /// --grace 0s, which ends it at once; after a rotation, another one with --grace 0s ends both.
    Rotate {
        /// Id of the key, which does not change.
        id: String,
        /// Maximum time for which the old token stays valid; 0s ends it at once.
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration(Duration::ZERO..=MAX))]
        grace: Duration,
        /// Lifetime of the new token, such as 90d; default: it expires when the old token would have.
        #[arg(long, value_name = "DURATION", value_parser = duration(LIFETIME))]
        expires_in: Option<Duration>,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Label of the key: 1 to 64 characters.
    #[arg(long, value_name = "TEXT", value_parser = ApiKeyLabel::parse)]
    label: ApiKeyLabel,
    /// Scopes of the key.
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "read,write"
    )]
    scopes: Vec<Scope>,
    /// Lifetime of the token, such as 90d; default: unlimited.
    #[arg(long, value_name = "DURATION", value_parser = duration(LIFETIME))]
    expires_in: Option<Duration>,
    /// Creates the SQLite file if there is none.
    #[arg(long)]
    create: bool,
    /// Reads an existing token from standard input instead of generating one; prints nothing.
    #[arg(long)]
    token_stdin: bool,
}

pub(super) async fn run(command: Command, sources: &Sources) -> anyhow::Result<()> {
    let (keys, log) = start(sources, KeysConfig::read)?;
    let usage = match &command {
        Command::Create(CreateArgs { create: true, .. }) => FileUse::WriteOrCreate,
        Command::List { .. } | Command::Log { .. } => FileUse::Read,
        Command::Create(_) | Command::Revoke { .. } | Command::Rotate { .. } => FileUse::Write,
    };
    let prints_token = matches!(
        command,
        Command::Rotate { .. }
            | Command::Create(CreateArgs {
                token_stdin: false,
                ..
            })
    );
    if prints_token {
        check_output()?;
    }
    let store = api_key_store(&keys, &mut SharedFile::new(usage)).await?;
    let store =
        store.context("keys.backend is memory: the API keys are set by keys.memory.tokens")?;
    match command {
        Command::Create(args) => create(args, &*store).await,
        Command::List { json } => key_list::run(json, &*store).await,
        Command::Log { json } => key_list::log(json, &*store).await,
        Command::Revoke { id } => revoke(&id, &*store).await,
        Command::Rotate {
            id,
            grace,
            expires_in,
        } => rotate(&id, grace, expires_in, &*store).await,
    }?;
    if usage != FileUse::Read {
        tracing::info!(store = keys.administered(), "this store was changed");
    }
    confirm_changes(&*store).await?;
    check_log(&log)
}

/// Waits until the changes of a command survive a fail-over.
pub(super) async fn confirm_changes(store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    store
        .confirm_changes()
        .await
        .map_err(|cause| anyhow!(cause))
        .context("the change is kept, but a fail-over can lose it")
}

async fn create(args: CreateArgs, store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    let key = ApiKey {
        id: ApiKeyId::from_random(&random_bits()?),
        label: args.label,
        scopes: args.scopes.into_iter().collect(),
    };
    let token = if args.token_stdin {
        read_token(io::stdin().lock())?
    } else {
        ApiToken::from_random(&random_bits()?)
    };
    match store
        .change(
            ApiKeyChange::Add(key.clone(), NewToken::new(&token, args.expires_in)),
            &actor(),
        )
        .await
    {
        Ok(_) if args.token_stdin => audit(&key, "API key registered", None),
        Ok(_) => {
            audit(&key, "API key created", None);
            print(&key, &token)?;
        }
        Err(ApiKeyChangeError::Refused(ApiKeyRefusal::TokenTaken(owner)))
            if owner.label == key.label && owner.scopes == key.scopes =>
        {
            audit(
                &owner,
                "API key unchanged: the token was registered before",
                None,
            );
            return Ok(());
        }
        Err(error) => return Err(change_error(error, &key.id, "created")),
    }
    if !args.token_stdin {
        warn_of_same_label(&key, store).await;
    }
    Ok(())
}

/// Two keys with one label are a rotation that was done by hand, or a mistake. If the keys cannot be listed, the key
/// that was created is valid nevertheless.
async fn warn_of_same_label(created: &ApiKey, store: &dyn ApiKeyStore) {
    let keys = store
        .list()
        .await
        .unwrap_or_default()
        .into_iter()
        .map(|key| key.key);
    let others: Vec<_> = keys
        .filter(|key| key.label == created.label && key.id != created.id)
        .collect();
    if !others.is_empty() {
        let api_keys = others
            .iter()
            .map(|key| key.id.as_str())
            .collect::<Vec<_>>()
            .join(",");
        tracing::warn!(
            api_key_label = created.label.as_str(),
            api_keys,
            "other API keys have the same label"
        );
    }
}

async fn revoke(id: &str, store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    let id = parse_id(id)?;
    let revoked = store
        .change(ApiKeyChange::Revoke(id.clone()), &actor())
        .await;
    let revoked = revoked.map_err(|error| change_error(error, &id, "revoked"))?;
    audit(
        &revoked
            .before
            .context("the store did not return the key")?
            .key,
        "API key revoked",
        None,
    );
    Ok(())
}

async fn rotate(
    id: &str,
    grace: Duration,
    expires_in: Option<Duration>,
    store: &dyn ApiKeyStore,
) -> anyhow::Result<()> {
    let id = parse_id(id)?;
    let token = ApiToken::from_random(&random_bits()?);
    let change = ApiKeyChange::Rotate(id.clone(), NewToken::new(&token, expires_in), grace);
    let rotated = store
        .change(change, &actor())
        .await
        .map_err(|error| change_error(error, &id, "rotated"))?;
    let old_token_ends = key_list::time(rotated.old_tokens_end());
    let key = rotated.after.context("the new token has expired")?.key;
    audit(&key, "API key rotated", Some(&old_token_ends));
    print(&key, &token)?;
    if !grace.is_zero() {
        tracing::info!(
            api_key = key.id.as_str(),
            old_token_ends,
            "the old token is accepted until then: if it has leaked, rotate again with --grace 0s, which ends both"
        );
    }
    Ok(())
}

/// Writes the audit event of a change. Scripts take the id of the key from it.
pub(super) fn audit(key: &ApiKey, change: &str, old_token_ends: Option<&str>) {
    let (id, label, scopes) = (key.id.as_str(), key.label.as_str(), key.scopes.to_string());
    tracing::info!(
        target: AuditEntry::LOG_TARGET, api_key = id, api_key_label = label, scopes, old_token_ends, "{change}"
    );
}

/// The user and the machine of this process, for the record of changes.
pub(super) fn actor() -> String {
    let host = gethostname().unwrap_or_default();
    format!("{}@{}", this_user(), host.to_string_lossy())
}

/// Returns 256 random bits for a new API key.
pub(super) fn random_bits() -> anyhow::Result<[u8; 32]> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).context("the operating system provides no random bits")?;
    Ok(bits)
}

/// Converts an error. After an unknown outcome, both the audit log and the error message name the key.
fn change_error(error: ApiKeyChangeError, id: &ApiKeyId, change: &str) -> anyhow::Error {
    if !matches!(
        error,
        ApiKeyChangeError::Store(StoreFailure::OutcomeUnknown(_))
    ) {
        return error.into();
    }
    let api_key = id.as_str();
    tracing::warn!(target: AuditEntry::LOG_TARGET, api_key, "outcome unknown: the API key may have been {change}");
    anyhow::Error::new(error).context(format!("API key {id}"))
}

/// Refuses a standard output that shows no token. The standard library opens `/dev/null` in place of a closed one, and
/// ignores the failure of a write to one that is only open for reading.
fn check_output() -> anyhow::Result<()> {
    let is_writable = write(io::stdout(), &[]) != Err(Errno::EBADF);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    ensure!(
        is_writable && output.rdev() != fs::metadata("/dev/null")?.rdev(),
        "standard output is closed or discarded, so the new token would be lost: nothing was changed"
    );
    Ok(())
}

fn print(key: &ApiKey, token: &ApiToken) -> anyhow::Result<()> {
    let line = SecretString::from(format!("{}\n", token.secret().expose_secret()));
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(line.expose_secret().as_bytes())
        .and_then(|()| stdout.flush());
    written.with_context(|| {
        format!("the new token of the API key {} could not be printed and is lost: rotate or revoke the key", key.id)
    })
}

/// Reads one token, with or without a line end.
fn read_token(input: impl Read) -> anyhow::Result<ApiToken> {
    let mut text = String::new();
    input
        .take(4096)
        .read_to_string(&mut text)
        .context("cannot read the token")?;
    let token = text.strip_suffix('\n').unwrap_or(&text);
    let token = token.strip_suffix('\r').unwrap_or(token);
    let token =
        ApiToken::parse(token.into()).context("standard input does not contain a valid token")?;
    if token.is_short() {
        tracing::warn!(
            "the token has fewer than 22 characters and can be guessed: rotate the key, which generates a token"
        );
    }
    Ok(token)
}

/// Parses the id of a key. clap does not do this, because its error would repeat the text, which can be a token.
fn parse_id(text: &str) -> anyhow::Result<ApiKeyId> {
    ensure!(
        !ApiToken::has_prefix(text),
        "the argument is a token, not an id: `animal-store keys list` shows the ids"
    );
    Ok(ApiKeyId::parse(text)?)
}
