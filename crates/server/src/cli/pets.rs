//! `animal-store pets`: moves pets out of the storage into a file, and back ([`import`]).

use std::{
    fs::{File, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf, absolute},
    time::Instant,
};

use animal_store_adapters_sqlite::FileUse;
use animal_store_domain::Pet;
use animal_store_pet_json::to_line;
use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use tokio::task::spawn_blocking;

use super::{
    command::{ClosedOutput, duration_since, print_result, start},
    import,
};
use crate::{
    config::{Sources, StorageConfig},
    wiring::Storage,
};

/// Number of pets in a page.
const PAGE_SIZE: usize = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Writes every pet, in order of id, to a file or to standard output.
    Export {
        /// File to create; -: standard output.
        #[arg(value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Adds the pets of a file.
    Import(import::ImportArgs),
}

pub(super) async fn run(command: Command, sources: &Sources) -> anyhow::Result<()> {
    let (storage, _log) = start(sources, StorageConfig::read)?;
    match command {
        Command::Export { output } => export(&output, storage).await,
        Command::Import(args) => import::run(args, storage).await,
    }
}

/// Writes the file under a temporary name in its folder, so that a file with its final name is complete. If the
/// temporary file is dropped, it is deleted.
async fn export(output: &Path, storage: StorageConfig) -> anyhow::Result<()> {
    let started = Instant::now();
    if output.as_os_str() == "-" {
        write_pets(storage, io::stdout()).await?;
        tracing::info!(duration = duration_since(started), "the pets were exported");
        return Ok(());
    }
    ensure!(
        output.symlink_metadata().is_err(),
        "{} exists: choose another name",
        output.display()
    );
    let path = absolute(output)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let prefix = format!(
        ".{}.partial-",
        path.file_name().unwrap_or_default().to_string_lossy()
    );
    // The umask removes some of these permissions.
    let mode = Permissions::from_mode(0o666);
    let file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(mode)
        .tempfile_in(folder);
    let file = file.with_context(|| format!("{} cannot be created", output.display()))?;
    let written = write_pets(storage, file.as_file().try_clone()?).await;
    let pets = written.with_context(|| format!("the export to {} failed", output.display()))?;
    let finish = || {
        file.as_file().sync_all()?;
        file.persist_noclobber(&path)?;
        File::open(folder)?.sync_all()
    };
    finish().with_context(|| format!("{} cannot be written", output.display()))?;
    print_result(&[("pets", pets.to_string())], started)
}

/// Writes all pets and returns their number.
async fn write_pets(
    storage: StorageConfig,
    mut writer: impl Write + Send + 'static,
) -> anyhow::Result<u64> {
    let storage = Storage::start_for_command(storage, FileUse::Read).await?;
    let repository = (storage.new_repository)();
    let (mut after, mut count) = (None, 0);
    loop {
        let pets = repository
            .list(None, after, PAGE_SIZE)
            .await
            .context("the pets cannot be read")?;
        let lines: Vec<u8> = pets.iter().flat_map(to_line).collect();
        let written = spawn_blocking(move || {
            writer
                .write_all(&lines)
                .and_then(|()| writer.flush())
                .map(|()| writer)
        });
        writer = match written.await? {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => bail!(ClosedOutput),
            written => written?,
        };
        count += pets.len() as u64;
        after = pets.last().map(Pet::id);
        if pets.len() < PAGE_SIZE {
            break;
        }
    }
    drop(repository);
    storage.close().await;
    Ok(count)
}
