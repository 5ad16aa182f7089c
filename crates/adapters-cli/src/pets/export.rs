//! `animal-store pets export`: writes the pets to a file or to standard output.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf, absolute},
    sync::Arc,
    time::Instant,
};

use animal_store_app::ExportPets;
use animal_store_pet_json::to_line;
use anyhow::{Context, ensure};
use clap::Args;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use super::OpenedPets;
use crate::{
    StoreUse,
    output::{duration_since, print_result, written},
};

/// Arguments of `pets export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// File to create, with mode 0600; -: standard output.
    #[arg(value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Writes every pet, in ascending order of id.
pub(super) async fn run(
    args: &ExportArgs,
    open: impl AsyncFnOnce(StoreUse) -> anyhow::Result<OpenedPets>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    if args.output.as_os_str() == "-" {
        write_pets(open(StoreUse::Read).await?, io::stdout()).await?;
        tracing::info!(duration = duration_since(started), "the pets were exported");
        return Ok(());
    }
    let name = args.output.display();
    ensure!(
        args.output.symlink_metadata().is_err(),
        "{name} exists: choose another name"
    );
    let path = absolute(&args.output)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let file = partial_file(&path, folder).with_context(|| format!("{name} cannot be created"))?;
    let writer = file.as_file().try_clone()?;
    let written = async { write_pets(open(StoreUse::Read).await?, writer).await };
    let written = written.await;
    let pets = written.with_context(|| format!("the export to {name} failed"))?;
    let finished = finish(file, &path, folder);
    finished.with_context(|| format!("{name} cannot be written"))?;
    print_result(&[("pets", pets.to_string())], started)
}

/// Gives the file its final name.
fn finish(file: NamedTempFile, path: &Path, folder: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    File::open(folder)?.sync_all()
}

/// Creates a file with mode 0600 and a temporary name in the folder of the export, so that a file with its final name is
/// complete. If it is dropped, it is deleted.
fn partial_file(path: &Path, folder: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tempfile::Builder::new()
        .prefix(&format!(".{name}.partial-"))
        .tempfile_in(folder)
}

/// Writes all pets and returns their number.
async fn write_pets(
    pets: OpenedPets,
    mut writer: impl Write + Send + 'static,
) -> anyhow::Result<u64> {
    let export = ExportPets::new(Arc::clone(&pets.repository));
    let mut count = 0;
    let mut after = None;
    loop {
        let page = export
            .execute(after)
            .await
            .context("the pets cannot be read")?;
        let lines: Vec<u8> = page.pets.iter().flat_map(to_line).collect();
        writer = write(writer, lines).await?;
        count += page.pets.len() as u64;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    drop(export);
    pets.close().await;
    Ok(count)
}

/// Writes on a thread that may block, and returns the writer.
async fn write<W: Write + Send + 'static>(mut writer: W, lines: Vec<u8>) -> anyhow::Result<W> {
    let result = spawn_blocking(move || {
        writer.write_all(&lines)?;
        writer.flush()?;
        Ok(writer)
    });
    written(result.await?)
}
