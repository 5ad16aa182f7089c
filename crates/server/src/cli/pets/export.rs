use std::{
    io::{self, ErrorKind, Write},
    path::PathBuf,
};

use animal_store_adapters_http::line;
use anyhow::{Context, bail};
use clap::Args;
use tokio::task::spawn_blocking;

use crate::{
    cli::{
        options::Settings,
        transfer::{self, ClosedOutput, NewFile, print_result, progress_bar},
    },
    config::Config,
    telemetry,
    wiring::{FileUse, Storage},
};

/// Number of pets in a page.
const PAGE_SIZE: usize = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// File to create; -: standard output.
    #[arg(value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) settings: Settings,
}

pub(super) fn run(args: ExportArgs, config: Config) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(export(args, config))
}

async fn export(args: ExportArgs, config: Config) -> anyhow::Result<()> {
    let storage = Storage::start_for_command(config.storage, FileUse::Read, 1).await?;
    let file = (args.output.as_os_str() != "-").then(|| NewFile::create(&args.output)).transpose()?;
    let mut writer: Box<dyn Write + Send> = match &file {
        Some(file) => Box::new(file.writer()?),
        None => Box::new(io::stdout()),
    };
    let bar = progress_bar(args.quiet, None, "{human_pos} pets, {per_sec}");
    let repository = (storage.new_repository)();
    let mut after = None;
    loop {
        let pets = repository.list(None, after, PAGE_SIZE).await.context("the pets cannot be read")?;
        let lines: Vec<u8> = pets.iter().flat_map(line).collect();
        let written = spawn_blocking(move || writer.write_all(&lines).map(|()| writer)).await?;
        writer = match written {
            Err(error) if file.is_none() && error.kind() == ErrorKind::BrokenPipe => bail!(ClosedOutput),
            written => written.with_context(|| format!("the export to {} failed", args.output.display()))?,
        };
        bar.inc(pets.len() as u64);
        after = pets.last().map(animal_store_domain::Pet::id);
        if pets.len() < PAGE_SIZE {
            break;
        }
    }
    writer.flush()?;
    bar.finish_and_clear();
    drop(repository);
    storage.close().await;
    let Some(file) = file else { return Ok(()) };
    file.finish()?;
    print_result(args.quiet, &[("pets", bar.position().to_string())])
}
