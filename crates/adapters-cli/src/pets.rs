//! `animal-store pets`: moves pets out of a storage into a file, and back.

mod export;
mod import;

use std::sync::Arc;

use animal_store_app::ports::PetRepository;
use clap::Subcommand;
use tokio::task::JoinHandle;

use self::{export::ExportArgs, import::ImportArgs};
use crate::StoreUse;

/// Commands of `pets`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes every pet, in order of id, to a file or to standard output.
    Export(ExportArgs),
    /// Adds the pets of a file.
    Import(ImportArgs),
}

/// A storage of pets that was opened for a command.
pub struct OpenedPets {
    /// The pets.
    pub repository: Arc<dyn PetRepository>,
    /// Ends after the last repository is dropped, everything is written, and the storage is closed.
    pub writer: Option<JoinHandle<()>>,
}

/// Runs a command. `open` opens the storage.
///
/// # Errors
/// If pets cannot be read or added, the file cannot be used, or a line of an import contains no valid pet.
pub async fn run(
    command: Command,
    open: impl AsyncFnOnce(StoreUse) -> anyhow::Result<OpenedPets>,
) -> anyhow::Result<()> {
    match command {
        Command::Export(args) => export::run(&args, open).await,
        Command::Import(args) => import::run(args, open).await,
    }
}

impl OpenedPets {
    /// Waits until everything is written and the storage is closed. The caller has dropped its repositories.
    async fn close(self) {
        drop(self.repository);
        if let Some(writer) = self.writer {
            // A panic was logged.
            let _ = writer.await;
        }
    }
}
