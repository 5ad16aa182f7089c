//! `animal-store pets import`: creates the pet of each line, as a client of the service does.

mod lines;
mod outage;
mod source;

use std::{io, path::PathBuf, sync::Arc, time::Instant};

use animal_store_app::{
    ApiKeyLabel, ImportPets, ImportRequests,
    ports::{AddPetError, AddedPet, PetRepository},
};
use animal_store_domain::NewPet;
use anyhow::{Context, ensure};
use clap::Args;
use tokio::{
    io::{AsyncWriteExt, stderr},
    task::JoinSet,
};

use self::{lines::Lines, outage::Outage, source::Source};
use super::OpenedPets;
use crate::{StoreUse, output::print_result};

const UNREADABLE: &str = "the input cannot be read";

/// Number of creates in flight, which share commits.
const IN_FLIGHT: usize = 1_000;

/// Arguments of `pets import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File to read, with a pet per line as JSON, in the shape of a request body; -: standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Name of the import; default: the digest of the file. An import that is repeated under its name within the
    /// retention of idempotency keys adds only the pets that are missing. The rules are those of the label of an API
    /// key.
    #[arg(long, value_parser = ApiKeyLabel::parse)]
    name: Option<ApiKeyLabel>,
    /// Creates the SQLite file if there is none.
    #[arg(long)]
    create: bool,
}

pub(super) async fn run(
    args: ImportArgs,
    open: impl AsyncFnOnce(StoreUse) -> anyhow::Result<OpenedPets>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let source = Source::of(&args.input);
    let name = source.import_name(args.name).await?;
    let mut lines = Lines::new(source.open().await?);
    let is_array = lines.is_array().await.context(UNREADABLE)?;
    ensure!(
        !is_array,
        "the input is a JSON array, not a pet per line: convert it with jq -c '.[]'"
    );
    let pets = open(StoreUse::writing(args.create)).await?;
    let mut import = Import::new(Arc::clone(&pets.repository), name.clone());
    let mut refused = 0_u64;
    while let Some(line) = lines.next().await.context(UNREADABLE)? {
        match line {
            Ok(pet) => import.add(pet).await?,
            Err(reason) => {
                refused += 1;
                report(lines.number(), &reason)
                    .await
                    .context("the refused lines cannot be written")?;
            }
        }
    }
    let imported = import.finish().await?;
    pets.close().await;
    let result = [
        ("added", imported.added.to_string()),
        ("already present", imported.present.to_string()),
        ("name", name),
        ("refused", refused.to_string()),
    ];
    print_result(&result, started)?;
    ensure!(refused == 0, "refused lines: {refused}");
    Ok(())
}

/// Writes the reason why a line was refused on standard error.
async fn report(line: u64, reason: &str) -> io::Result<()> {
    let text = format!("line {line}: {reason}\n");
    let mut stderr = stderr();
    stderr.write_all(text.as_bytes()).await?;
    stderr.flush().await
}

/// An import that runs.
struct Import {
    requests: ImportRequests,
    pets: ImportPets,
    outage: Outage,
    in_flight: JoinSet<Result<AddedPet, AddPetError>>,
    imported: ImportedPets,
}

/// Numbers of pets.
#[derive(Default)]
struct ImportedPets {
    added: u64,
    /// Pets that an earlier run of the same import has added.
    present: u64,
}

impl Import {
    fn new(repository: Arc<dyn PetRepository>, name: String) -> Self {
        Self {
            requests: ImportRequests::new(name),
            pets: ImportPets::new(repository),
            outage: Outage::default(),
            in_flight: JoinSet::new(),
            imported: ImportedPets::default(),
        }
    }

    /// Starts to add a pet. Waits while too many creates are in flight.
    async fn add(&mut self, pet: NewPet) -> anyhow::Result<()> {
        self.join(IN_FLIGHT - 1).await?;
        let request = self.requests.next(pet);
        let pets = self.pets.clone();
        let mut waits = self.outage.waits();
        self.in_flight.spawn(async move {
            let wait = |error: &AddPetError| waits.pause(error);
            let added = pets.execute(request, wait).await?;
            waits.succeeded();
            Ok(added)
        });
        Ok(())
    }

    async fn finish(mut self) -> anyhow::Result<ImportedPets> {
        self.join(0).await?;
        Ok(self.imported)
    }

    /// Waits until at most `max` creates are in flight.
    async fn join(&mut self, max: usize) -> anyhow::Result<()> {
        while self.in_flight.len() > max
            && let Some(created) = self.in_flight.join_next().await
        {
            let created =
                created?.context("the import failed: run the same command again to continue")?;
            if created.replayed {
                self.imported.present += 1;
            } else {
                self.imported.added += 1;
            }
        }
        Ok(())
    }
}
