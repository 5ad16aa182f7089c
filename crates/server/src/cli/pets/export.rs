use std::{
    fs::{File, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf, absolute},
};

use animal_store_adapters_http::line;
use anyhow::{Context, bail, ensure};
use clap::Args;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::{
    cli::transfer::{self, ClosedOutput, print_result, progress_bar},
    config::StorageConfig,
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
}

pub(super) fn run(args: &ExportArgs, storage: StorageConfig) -> anyhow::Result<()> {
    transfer::run(async {
        if args.output.as_os_str() == "-" {
            return export(storage, args.quiet, io::stdout()).await.map(drop);
        }
        ensure!(args.output.symlink_metadata().is_err(), "{} exists: choose another name", args.output.display());
        let file = create(&args.output).with_context(|| format!("{} cannot be created", args.output.display()))?;
        let exported = export(storage, args.quiet, file.as_file().try_clone()?).await;
        let pets = exported.with_context(|| format!("the export to {} failed", args.output.display()))?;
        finish(file, &args.output).with_context(|| format!("{} cannot be written", args.output.display()))?;
        print_result(args.quiet, &[("pets", pets.to_string())])
    })
}

/// Writes all pets and returns their number.
async fn export(storage: StorageConfig, quiet: bool, mut writer: impl Write + Send + 'static) -> anyhow::Result<u64> {
    let storage = Storage::start_for_command(storage, FileUse::Read, 1).await?;
    let bar = progress_bar(quiet, None, "{human_pos} pets, {per_sec}");
    let repository = (storage.new_repository)();
    let mut after = None;
    loop {
        let pets = repository.list(None, after, PAGE_SIZE).await.context("the pets cannot be read")?;
        let lines: Vec<u8> = pets.iter().flat_map(line).collect();
        let written = spawn_blocking(move || writer.write_all(&lines).and_then(|()| writer.flush()).map(|()| writer));
        writer = match written.await? {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => bail!(ClosedOutput),
            written => written?,
        };
        bar.inc(pets.len() as u64);
        after = pets.last().map(animal_store_domain::Pet::id);
        if pets.len() < PAGE_SIZE {
            break;
        }
    }
    bar.finish_and_clear();
    drop(repository);
    storage.close().await;
    Ok(bar.position())
}

/// Creates the file under a temporary name in its folder, so that a file with its final name is complete. If it is
/// dropped, it is deleted.
fn create(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = format!(".{}.partial-", path.file_name().unwrap_or_default().to_string_lossy());
    // The umask removes some of these permissions.
    let mode = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(&prefix).permissions(mode).tempfile_in(folder(path)?)
}

/// Writes the file to the disk and gives it its name, unless a file has it by now.
fn finish(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    File::open(folder(path)?)?.sync_all()
}

fn folder(path: &Path) -> io::Result<PathBuf> {
    Ok(absolute(path)?.parent().unwrap_or(Path::new("/")).to_owned())
}
