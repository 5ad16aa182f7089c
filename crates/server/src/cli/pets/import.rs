//! `animal-store pets import`: creates the pet of each line, as a client of the service does.
//!
//! Each create has an idempotency key made of the name of the import, the digest of the pet, and the number of equal
//! lines before it. So an import that is repeated adds only what is missing, as long as these keys are kept.

mod lines;

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, CreatePet, IdempotencyKey, Scopes, WriteAccess,
    ports::{AddPet, AddPetError, AddedPet, StoreFailure},
};
use anyhow::{Context, bail, ensure};
use backon::{BackoffBuilder, ExponentialBuilder};
use clap::{Args, builder::NonEmptyStringValueParser};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

use self::lines::Lines;
use crate::{
    cli::{
        InvalidConfig,
        transfer::{self, print_result},
    },
    config::StorageConfig,
    wiring::{FileUse, Storage, suggest_create},
};

/// Number of creates in flight, which share commits. While further lines are read, it is exceeded by those.
const IN_FLIGHT: usize = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// File to read, with a pet per line as JSON, in the shape of a request body; -: standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Name of the import; default: the digest of the file. An import that is repeated under its name within the
    /// retention of idempotency keys adds only the pets that are missing.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// File to create for the numbers of refused lines and the reasons; default: standard error.
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,
    /// Checks the file, and adds nothing.
    #[arg(long)]
    dry_run: bool,
    /// Creates the SQLite file if there is none.
    #[arg(long)]
    create: bool,
    /// Prints errors and refused lines only.
    #[arg(long)]
    quiet: bool,
}

pub(super) fn run(args: ImportArgs, storage: StorageConfig) -> anyhow::Result<()> {
    transfer::run(import(args, storage))
}

async fn import(args: ImportArgs, storage: StorageConfig) -> anyhow::Result<()> {
    let started = Instant::now();
    let retention = storage.idempotency_retention();
    let unreadable = || format!("{} cannot be read", args.input.display());
    let path = (args.input.as_os_str() != "-").then_some(&*args.input);
    let name = match (args.name, path) {
        (Some(name), _) => name,
        (None, Some(path)) if !fs::metadata(path).is_ok_and(|input| input.file_type().is_fifo()) => {
            lines::digest(path).with_context(unreadable)?
        }
        (None, _) => bail!(InvalidConfig("standard input and a pipe can be read only once: add --name".to_owned())),
    };
    let rejected: Box<dyn Write + Send> = match &args.rejected {
        None => Box::new(io::stderr()),
        Some(path) => {
            let file = File::create_new(path);
            Box::new(file.with_context(|| format!("{} cannot be created for --rejected", path.display()))?)
        }
    };
    let usage = if args.create { FileUse::WriteOrCreate } else { FileUse::Write };
    let storage = if args.dry_run {
        None
    } else {
        Some(Storage::start_for_command(storage, usage, 2 * IN_FLIGHT).await.map_err(suggest_create)?)
    };
    let creates = storage.as_ref().map(|storage| CreatePet::new((storage.new_repository)()));
    let access = access()?;
    let (mut added, mut present) = (0_u64, 0_u64);
    let (path, quiet) = (path.map(Path::to_owned), args.quiet);
    // A pipe blocks until its writer opens it.
    let opened = spawn_blocking(move || Lines::open(path.as_deref(), rejected, quiet)).await?;
    let mut lines = opened.with_context(unreadable)?;
    let mut in_flight = JoinSet::new();
    let mut at_end = false;
    while !at_end {
        // It waits for the input, and until the refused lines are read.
        let read;
        (lines, read) = spawn_blocking(|| lines.read()).await??;
        at_end = read.is_none();
        for (pet, key) in read.unwrap_or_default() {
            let Some(creates) = creates.clone() else {
                added += 1;
                continue;
            };
            let key = IdempotencyKey::new(access.key().id.clone(), &format!("{name} {key}"));
            in_flight.spawn(create(creates, access.clone(), AddPet { pet, idempotency_key: Some(key) }));
        }
        while in_flight.len() > if at_end { 0 } else { IN_FLIGHT } {
            let Some(outcome) = in_flight.join_next().await else { break };
            let outcome = outcome?.context("the import failed: run the same command again to continue")?;
            if outcome.replayed { present += 1 } else { added += 1 }
        }
    }
    drop(creates);
    if let Some(storage) = storage {
        storage.close().await;
    }
    let mut result = vec![(if args.dry_run { "valid" } else { "added" }, added.to_string())];
    if !args.dry_run {
        let retention = humantime::format_duration(retention);
        result.push(("already present", present.to_string()));
        result.push(("name", name));
        result.push(("a repetition under this name adds only what is missing for", retention.to_string()));
    }
    result.push(("refused", lines.refused.to_string()));
    result.push(("duration", format!("{:.1?}", started.elapsed())));
    print_result(args.quiet, &result)?;
    ensure!(lines.refused == 0, "refused lines: {}", lines.refused);
    Ok(())
}

/// The access of imports, under an API key id that no other key has: others have 11 digits or a number.
fn access() -> anyhow::Result<WriteAccess> {
    let key = ApiKey { id: ApiKeyId::new("import"), label: ApiKeyLabel::parse("import")?, scopes: Scopes::ALL };
    Ok(WriteAccess::new(Arc::new(key))?)
}

/// Creates a pet. A failure that may pass is retried: the idempotency key prevents a second pet.
async fn create(create: CreatePet, access: WriteAccess, request: AddPet) -> Result<AddedPet, AddPetError> {
    let backoff = ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_max_times(7);
    let mut pauses = backoff.with_jitter().build();
    loop {
        let error = match create.execute(&access, request.clone()).await {
            Ok(added) => return Ok(added),
            Err(error) => error,
        };
        match (&error, pauses.next()) {
            (AddPetError::IdempotencyMismatch | AddPetError::Store(StoreFailure::Corrupt(_)), _) | (_, None) => {
                return Err(error);
            }
            (_, Some(pause)) => sleep(pause).await,
        }
    }
}
