use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use animal_store_adapters_files::FileFormat;
use animal_store_app::{
    ImportError, ImportErrorReason, ImportOptions, ImportPets, ImportSummary,
    ports::{BulkStorage, BulkStorageError, PetSource},
};
use anyhow::{Context, anyhow, bail};
use clap::Args;

use crate::{
    cli::{
        options::Settings,
        transfer::{self, CountedReader, NoStorage, Progress, StopRequest, Total, command_line, print_result},
    },
    config::Config,
    telemetry,
    wiring::BulkAccess,
};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(in crate::cli) struct ImportArgs {
    /// File to read; -: standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Format, ndjson or csv; default: that of the extension of the file, otherwise ndjson.
    #[arg(long)]
    format: Option<FileFormat>,
    /// Keeps the ids of the file. A pet that the storage has already is not added again, and a line with the id of
    /// another pet is refused. Without this option, the storage assigns new ids.
    #[arg(long)]
    keep_ids: bool,
    /// Checks the file, without ids of the storage, and writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Ends the import at the first line that is refused.
    #[arg(long)]
    strict: bool,
    /// Continues an import of the same file that was interrupted. If it was finished, nothing is added.
    #[arg(long)]
    resume: bool,
    /// Prints errors and refused lines only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) settings: Settings,
}

pub(super) fn run(args: ImportArgs, config: Config) -> anyhow::Result<()> {
    transfer::refuse_memory(&config)?;
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(|stop| import(args, config, stop))
}

async fn import(args: ImportArgs, config: Config, stop: StopRequest) -> anyhow::Result<()> {
    let ImportArgs { keep_ids, dry_run, strict, resume, quiet, .. } = args;
    let (reader, total) = open(&args.input).with_context(|| format!("{} cannot be read", args.input.display()))?;
    let format = args.format.or_else(|| FileFormat::from_path(&args.input)).unwrap_or(FileFormat::Ndjson);
    let source: Box<dyn PetSource> = format.open(reader)?;
    // After the file: a wrong name creates no storage.
    let storage: Arc<dyn BulkStorage> =
        if dry_run { Arc::new(NoStorage) } else { transfer::open_stores(config, BulkAccess::Write).await?.pets };
    let mut progress = Progress::new(quiet, total, stop);
    let options = ImportOptions { keep_ids, strict, dry_run, resume };
    let imported = ImportPets::new(storage).execute(source, options, &mut progress).await;
    progress.finish();
    let (done, failure) = match imported {
        Ok(done) => (done, None),
        Err(error) => (error.done, Some(error)),
    };
    print_result(quiet, &lines(&done, dry_run))?;
    let is_unknown = failure.as_ref().is_some_and(|error| matches!(error.reason, ImportErrorReason::OutcomeUnknown(_)));
    // Before the first batch, --resume would find an earlier import of the file.
    let needs_resume = !resume && (done.lines() > 0 || is_unknown);
    let continuation = || {
        let command = command_line(if needs_resume { &["--resume"] } else { &[] });
        if is_standard_input(&args.input) { command + " < FILE" } else { command }
    };
    match failure {
        Some(error)
            if is_unknown || matches!(error.reason, ImportErrorReason::Storage(BulkStorageError::Unavailable(_))) =>
        {
            bail!("{:#}; to continue: {}", anyhow!(error), continuation())
        }
        Some(ImportError { reason: ImportErrorReason::RefusedLine { line, reason }, .. }) if !dry_run => {
            bail!(
                "line {line}: {reason}; the lines before it are imported: import the corrected file from this line on"
            )
        }
        Some(error) => return Err(error.into()),
        None if done.stopped => bail!("interrupted; to continue: {}", continuation()),
        None => {}
    }
    match done.refused {
        0 => Ok(()),
        1 => bail!("1 line was refused"),
        refused => bail!("{refused} lines were refused"),
    }
}

fn is_standard_input(input: &Path) -> bool {
    input.as_os_str() == "-"
}

/// Opens the input, and returns how its number of pets is estimated.
fn open(input: &Path) -> io::Result<(Box<dyn Read + Send>, Total)> {
    if is_standard_input(input) {
        return Ok((Box::new(io::stdin()), Total::Unknown));
    }
    let file = File::open(input)?;
    let size = file.metadata()?.len();
    let reader = CountedReader::new(file);
    let total = Total::File { size, read: reader.count() };
    Ok((Box::new(reader), total))
}

fn lines(done: &ImportSummary, dry_run: bool) -> Vec<(&'static str, String)> {
    let refused = ("refused", done.refused.to_string());
    if dry_run {
        return vec![("valid", done.added.to_string()), refused];
    }
    let resumed = (done.resumed > 0).then(|| ("lines that were done before", done.resumed.to_string()));
    let before = "yes; without --resume, the file is imported again".to_owned();
    let imported_before = done.imported_before.then_some(("imported before", before));
    let added = [("added", done.added.to_string()), ("already there", done.existing.to_string()), refused];
    resumed.into_iter().chain(imported_before).chain(added).collect()
}
