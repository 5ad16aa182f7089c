//! `animal-store keys`: prints a token or a list on standard output, and the audit events on standard error.

mod list;
mod log;
mod rows;
mod token;

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, ApiToken, AuditEntry, IssueApiKey, IssueOutcome, ListApiKeys,
    NewToken, ReadAuditLog, RevokeApiKey, RotateApiKey, Scope,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use animal_store_settings::parsers::duration;
use anyhow::{Context, anyhow, ensure};
use clap::{Args, Subcommand};

pub use self::token::random_bits;
use self::{
    rows::time,
    token::{check_output, print_token, read_token},
};
use crate::StoreUse;

/// 100 years.
const MAX: Duration = Duration::from_hours(876_600);
const GRACE: RangeInclusive<Duration> = Duration::ZERO..=MAX;
const LIFETIME: RangeInclusive<Duration> = Duration::from_secs(1)..=MAX;

/// Commands of `keys`.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    /// Gives an API key a new token and prints it; the old token stays valid for at most 24 hours, or for --grace.
    ///
    /// The new token cannot be shown again. The output says when the old token ends. If the old token has leaked, add
    /// --grace 0s, which ends it at once; after a rotation, another one with --grace 0s ends both.
    Rotate(RotateArgs),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
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

/// Arguments of `keys rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Id of the key, which does not change.
    id: String,
    /// Maximum time for which the old token stays valid; 0s ends it at once.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration(GRACE))]
    grace: Duration,
    /// Lifetime of the new token, such as 90d; default: it expires when the old token would have.
    #[arg(long, value_name = "DURATION", value_parser = duration(LIFETIME))]
    expires_in: Option<Duration>,
}

/// A store of API keys that was opened for a command.
pub struct OpenedKeys {
    /// The store.
    pub store: Arc<dyn ApiKeyStore>,
    /// The backend, and where it keeps the API keys.
    pub place: String,
    /// The user and the machine, for the audit log.
    pub operator: String,
}

/// Runs a command. `open` opens the store.
///
/// # Errors
/// If the command fails. The error contains no token.
pub async fn run(
    command: Command,
    open: impl AsyncFnOnce(StoreUse) -> anyhow::Result<OpenedKeys>,
) -> anyhow::Result<()> {
    if command.prints_token() {
        check_output()?;
    }
    let keys = open(command.store_use()).await?;
    let store = Arc::clone(&keys.store);
    match command {
        Command::Create(args) => create(args, &keys).await,
        Command::List { json } => list::run(&ListApiKeys::new(store), json).await,
        Command::Log { json } => log::run(&ReadAuditLog::new(store), json).await,
        Command::Revoke { id } => revoke(&id, &keys).await,
        Command::Rotate(args) => rotate(&args, &keys).await,
    }?;
    confirm_changes(&*keys.store).await
}

impl Command {
    fn prints_token(&self) -> bool {
        match self {
            Self::Create(args) => !args.token_stdin,
            Self::Rotate(_) => true,
            Self::List { .. } | Self::Log { .. } | Self::Revoke { .. } => false,
        }
    }

    fn store_use(&self) -> StoreUse {
        match self {
            Self::Create(args) => StoreUse::writing(args.create),
            Self::Revoke { .. } | Self::Rotate(_) => StoreUse::Write,
            Self::List { .. } | Self::Log { .. } => StoreUse::Read,
        }
    }
}

/// Waits until the changes of a command survive a fail-over.
pub(crate) async fn confirm_changes(store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    store
        .confirm_changes()
        .await
        .map_err(|cause| anyhow!(cause))
        .context("the change is kept, but a fail-over can lose it")
}

async fn create(args: CreateArgs, keys: &OpenedKeys) -> anyhow::Result<()> {
    let key = ApiKey {
        id: ApiKeyId::from_random(&random_bits()?),
        label: args.label,
        scopes: args.scopes.into_iter().collect(),
    };
    let token = if args.token_stdin {
        read_token()?
    } else {
        ApiToken::from_random(&random_bits()?)
    };
    let stored = NewToken::new(&token, args.expires_in);
    let issue = IssueApiKey::new(Arc::clone(&keys.store));
    let issued = issue.execute(&key, stored, &keys.operator).await;
    let store = &keys.place;
    match issued.map_err(|error| change_error(error, &key.id, store, "created"))? {
        IssueOutcome::AlreadyRegistered(owner) => {
            let unchanged = "API key unchanged: the token was registered before";
            audit(&owner, store, unchanged);
        }
        IssueOutcome::Added if args.token_stdin => audit(&key, store, "API key registered"),
        IssueOutcome::Added => {
            audit(&key, store, "API key created");
            print_token(&key, &token)?;
            let others = issue.same_label(&key).await;
            warn_of_same_label(&key, &others);
        }
    }
    Ok(())
}

fn warn_of_same_label(key: &ApiKey, others: &[ApiKeyId]) {
    if !others.is_empty() {
        let ids: Vec<_> = others.iter().map(ApiKeyId::as_str).collect();
        tracing::warn!(
            api_key_label = key.label.as_str(),
            api_keys = ids.join(","),
            "other API keys have the same label"
        );
    }
}

async fn revoke(id: &str, keys: &OpenedKeys) -> anyhow::Result<()> {
    let id = parse_id(id)?;
    let revoke = RevokeApiKey::new(Arc::clone(&keys.store));
    let revoked = revoke.execute(&id, &keys.operator).await;
    let revoked = revoked.map_err(|error| change_error(error, &id, &keys.place, "revoked"))?;
    audit(&revoked, &keys.place, "API key revoked");
    Ok(())
}

async fn rotate(args: &RotateArgs, keys: &OpenedKeys) -> anyhow::Result<()> {
    let id = parse_id(&args.id)?;
    let token = ApiToken::from_random(&random_bits()?);
    let stored = NewToken::new(&token, args.expires_in);
    let rotate = RotateApiKey::new(Arc::clone(&keys.store));
    let rotated = rotate.execute(&id, stored, args.grace, &keys.operator);
    let rotated = rotated.await;
    let store = &keys.place;
    let rotated = rotated.map_err(|error| change_error(error, &id, store, "rotated"))?;
    let old_token_ends = time(rotated.old_tokens_end);
    write_audit_event(
        &rotated.key,
        store,
        "API key rotated",
        Some(&old_token_ends),
    );
    print_token(&rotated.key, &token)?;
    if !args.grace.is_zero() {
        tracing::info!(
            api_key = id.as_str(),
            old_token_ends,
            "the old token is accepted until then: if it has leaked, rotate again with --grace 0s, which ends both"
        );
    }
    Ok(())
}

/// Writes the audit event of a change. Scripts take the id of the key from it.
pub fn audit(key: &ApiKey, store: &str, change: &str) {
    write_audit_event(key, store, change, None);
}

fn write_audit_event(key: &ApiKey, store: &str, change: &str, old_token_ends: Option<&str>) {
    tracing::info!(
        target: AuditEntry::LOG_TARGET,
        api_key = key.id.as_str(),
        api_key_label = key.label.as_str(),
        scopes = key.scopes.to_string(),
        old_token_ends,
        store,
        "{change}"
    );
}

/// Converts an error. A refusal names the store: it can be the wrong one. After an unknown outcome, both the audit event
/// and the error message name the key.
fn change_error(
    error: ApiKeyChangeError,
    id: &ApiKeyId,
    store: &str,
    change: &str,
) -> anyhow::Error {
    let context = match error {
        ApiKeyChangeError::Refused(_) => store.to_owned(),
        ApiKeyChangeError::Store(StoreFailure::OutcomeUnknown(_)) => {
            let api_key = id.as_str();
            tracing::warn!(
                target: AuditEntry::LOG_TARGET,
                api_key,
                store,
                "outcome unknown: the API key may have been {change}"
            );
            format!("API key {id}")
        }
        ApiKeyChangeError::Store(_) => return error.into(),
    };
    anyhow::Error::new(error).context(context)
}

/// Parses the id of a key. clap does not do this, because its error would repeat the text, which can be a token.
fn parse_id(text: &str) -> anyhow::Result<ApiKeyId> {
    ensure!(
        !ApiToken::has_prefix(text),
        "the argument is a token, not an id: `animal-store keys list` shows the ids"
    );
    Ok(ApiKeyId::parse(text)?)
}
