//! `animal-store keys`: standard output has what was asked for and nothing else, standard error the log.

mod table;

use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, ApiToken, IssueApiKey, IssueApiKeyError, IssueRequest, ListApiKeys, RevokeApiKey,
    RevokeApiKeyError, RotateApiKey, RotateApiKeyError, RotateRequest, Scope,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError},
};
use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use secrecy::{ExposeSecret, SecretString};

use super::Settings;
use crate::{
    config::Config,
    random,
    telemetry::{self, AUDIT},
    wiring,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes an API key and prints its token, which is never shown again.
    Create {
        #[command(flatten)]
        create: CreateArgs,
        #[command(flatten)]
        settings: Settings,
    },
    /// Lists the tokens of all API keys, without the tokens themselves.
    List {
        #[command(flatten)]
        list: ListArgs,
        #[command(flatten)]
        settings: Settings,
    },
    /// Ends every token of an API key now.
    Revoke {
        /// The id of the key.
        id: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Gives an API key a new token and prints it; it is never shown again.
    Rotate {
        #[command(flatten)]
        rotate: RotateArgs,
        #[command(flatten)]
        settings: Settings,
    },
}

/// A command without the options of the configuration.
#[derive(Debug)]
pub(super) enum Action {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(String),
    Rotate(RotateArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// What people call the key: 1 to 64 characters.
    #[arg(long, value_name = "TEXT", value_parser = ApiKeyLabel::parse)]
    label: ApiKeyLabel,
    /// What it may do.
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "read,write")]
    scopes: Vec<Scope>,
    /// How long it is valid, such as 90d; for ever by default.
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires_in: Option<Duration>,
    /// Takes a token over from another system, from standard input, rather than making one.
    #[arg(long)]
    token_stdin: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Prints a JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    /// The id of the key; it stays.
    id: String,
    /// How long the old token stays valid, at most; 0s ends it now.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = grace)]
    grace: Duration,
    /// How long the new token is valid, such as 90d; as long as the old one was by default.
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires_in: Option<Duration>,
}

impl Command {
    pub(super) fn split(self) -> (Action, Settings) {
        match self {
            Self::Create { create, settings } => (Action::Create(create), settings),
            Self::List { list, settings } => (Action::List(list), settings),
            Self::Revoke { id, settings } => (Action::Revoke(id), settings),
            Self::Rotate { rotate, settings } => (Action::Rotate(rotate), settings),
        }
    }
}

pub(super) fn run(action: Action, config: Config) -> anyhow::Result<()> {
    let Some(store) = wiring::api_key_store(config.keys) else {
        bail!("keys.backend is memory: those API keys are part of the configuration, as keys.memory.tokens");
    };
    let audit = telemetry::start_audit(&config.log);
    let done = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        match action {
            Action::Create(create) => issue(create, store).await,
            Action::List(list) => self::list(&list, store).await,
            Action::Revoke(id) => revoke(&id, store).await,
            Action::Rotate(rotate) => self::rotate(rotate, store).await,
        }
    });
    done.and_then(|()| audit.complete())
}

async fn issue(create: CreateArgs, store: Arc<dyn ApiKeyStore>) -> anyhow::Result<()> {
    let key = ApiKey {
        id: ApiKeyId::from_random(&random::bits()?),
        label: create.label,
        scopes: create.scopes.into_iter().collect(),
    };
    let token =
        if create.token_stdin { read_token(io::stdin().lock())? } else { ApiToken::from_random(&random::bits()?) };
    let request = IssueRequest { key: key.clone(), token: token.clone(), lifetime: create.expires_in };
    let issued = IssueApiKey::new(store).execute(request).await;
    if let Err(IssueApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))) = &issued {
        tell(&key, "API key perhaps created: the outcome is unknown");
    }
    match issued? {
        AddedKey::New if create.token_stdin => tell(&key, "API key registered"),
        AddedKey::New => {
            tell(&key, "API key created");
            print(&key, &token)?;
        }
        AddedKey::Existing(key) => tell(&key, "API key exists already: nothing was changed"),
    }
    Ok(())
}

async fn list(list: &ListArgs, store: Arc<dyn ApiKeyStore>) -> anyhow::Result<()> {
    let entries = ListApiKeys::new(store).execute().await?;
    let text = if list.json { table::json(&entries)? } else { table::text(&entries) };
    io::stdout().write_all(text.as_bytes()).context("cannot write the list")
}

async fn revoke(id: &str, store: Arc<dyn ApiKeyStore>) -> anyhow::Result<()> {
    let id = parse_id(id)?;
    let revoked = RevokeApiKey::new(store).execute(id.clone()).await;
    if let Err(RevokeApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))) = &revoked {
        tell_unknown(&id, "API key perhaps revoked: the outcome is unknown");
    }
    tell(&revoked?, "API key revoked");
    Ok(())
}

async fn rotate(rotate: RotateArgs, store: Arc<dyn ApiKeyStore>) -> anyhow::Result<()> {
    let id = parse_id(&rotate.id)?;
    let token = ApiToken::from_random(&random::bits()?);
    let request =
        RotateRequest { id: id.clone(), token: token.clone(), grace: rotate.grace, lifetime: rotate.expires_in };
    let rotated = RotateApiKey::new(store).execute(request).await;
    if let Err(RotateApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))) = &rotated {
        tell_unknown(&id, "API key perhaps rotated: the outcome is unknown");
    }
    let key = rotated?;
    tell(&key, "API key rotated");
    print(&key, &token)
}

/// The audit log; it is also where scripts find the id.
fn tell(key: &ApiKey, what: &str) {
    let scopes = key.scopes.to_string();
    tracing::info!(target: AUDIT, api_key = key.id.as_str(), api_key_label = key.label.as_str(), scopes, "{what}");
}

fn tell_unknown(id: &ApiKeyId, what: &str) {
    tracing::warn!(target: AUDIT, api_key = id.as_str(), "{what}");
}

fn print(key: &ApiKey, token: &ApiToken) -> anyhow::Result<()> {
    let line = SecretString::from(format!("{}\n", token.secret().expose_secret()));
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(line.expose_secret().as_bytes()).and_then(|()| stdout.flush());
    written.with_context(|| format!("nobody has seen the new token of the API key {}: rotate or revoke it", key.id))
}

/// The one token that there is to read, with or without a line end.
fn read_token(input: impl Read) -> anyhow::Result<ApiToken> {
    let mut text = String::new();
    input.take(4096).read_to_string(&mut text).context("cannot read the token")?;
    let token = text.strip_suffix('\n').unwrap_or(&text);
    let token = token.strip_suffix('\r').unwrap_or(token);
    ApiToken::parse(token.into()).context("standard input holds no token")
}

/// Not while the command line is parsed: clap would repeat what may be a token in its complaint.
fn parse_id(text: &str) -> anyhow::Result<ApiKeyId> {
    ensure!(!ApiToken::has_prefix(text), "that is a token, not an id: `keys list` shows the ids");
    Ok(ApiKeyId::parse(text)?)
}

/// What anybody could mean.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

fn grace(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).ok().filter(|&duration| duration <= LONGEST);
    duration.ok_or_else(|| "a duration has a unit, such as 30m, 24h or 90d, and at most 100 years".to_owned())
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let least = Duration::from_secs(1);
    grace(text).and_then(|duration| if duration >= least { Ok(duration) } else { Err("at least 1s".to_owned()) })
}
