use std::{
    io::{self, ErrorKind, Write},
    path::PathBuf,
    time::SystemTime,
};

use animal_store_adapters_files::FileFormat;
use animal_store_app::{ExportPets, TransferError};
use anyhow::{Context, bail};
use clap::Args;

use crate::{
    cli::{
        options::Settings,
        transfer::{self, ClosedOutput, NewFile, Progress, StopRequest, Total, command_line, print_result},
    },
    config::Config,
    telemetry,
    wiring::BulkAccess,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// Format, ndjson or csv; default: that of the extension of the file, otherwise ndjson.
    #[arg(long)]
    format: Option<FileFormat>,
    /// File to create; -: standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) settings: Settings,
}

pub(super) fn run(args: ExportArgs, config: Config) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(|stop| export(args, config, stop))
}

async fn export(args: ExportArgs, config: Config, stop: StopRequest) -> anyhow::Result<()> {
    let stores = transfer::open_stores(config, BulkAccess::Read).await?;
    let file = (args.output.as_os_str() != "-").then(|| NewFile::create(&args.output, 0o666)).transpose()?;
    let writer: Box<dyn Write + Send> = match &file {
        Some(file) => Box::new(file.writer()?),
        None => Box::new(io::stdout()),
    };
    let total = if args.quiet { Total::Unknown } else { transfer::estimate(&*stores.pets).await? };
    let mut progress = Progress::new(args.quiet, total, stop);
    let format = args.format.or_else(|| FileFormat::from_path(&args.output)).unwrap_or(FileFormat::Ndjson);
    let exported = match format.create(writer, SystemTime::now()) {
        Ok(mut sink) => ExportPets::new(stores.pets).execute(&mut *sink, &mut progress).await,
        Err(error) => Err(TransferError::File(error)),
    };
    progress.finish();
    let summary = match exported {
        Err(TransferError::File(error)) if file.is_none() && error.kind() == ErrorKind::BrokenPipe => {
            bail!(ClosedOutput)
        }
        exported => exported.with_context(|| format!("the export to {} failed", args.output.display()))?,
    };
    if summary.stopped {
        bail!("interrupted: the export is not complete; to begin again: {}", command_line(&[]));
    }
    let Some(file) = file else { return Ok(()) };
    file.finish()?;
    print_result(args.quiet, &[("pets", summary.pets.to_string()), ("sha256", summary.digest.to_string())])
}
