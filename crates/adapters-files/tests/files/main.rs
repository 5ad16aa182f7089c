//! Files of pets and backups, through the use cases that read and write them.

mod backups;
mod cut_files;
mod exports;
mod foreign_files;
mod line_reasons;

use std::{
    io::{self, Write},
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use animal_store_adapters_files::FileFormat;
use animal_store_app::{
    ExportPets, ImportError, ImportObserver, ImportOptions, ImportPets, ImportSummary, PetsDigest, TransferObserver,
    ports::{BulkPet, BulkStorage, PetBatch, PetFileError, PetLine, StoredPet},
    test_support::MemoryBulkStorage,
};
use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};
use proptest::{collection::btree_map, option, prelude::*, sample::select};

const FORMATS: [FileFormat; 2] = [FileFormat::Ndjson, FileFormat::Csv];

/// A file in memory that can be read while it is written.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no thread panics with the lock").clone()
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics with the lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects the lines that were refused.
#[derive(Default)]
struct Observer {
    refused: Vec<(u64, String)>,
}

impl TransferObserver for Observer {
    fn advanced(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl ImportObserver for Observer {
    fn refused(&mut self, line: u64, reason: &str) {
        self.refused.push((line, reason.to_owned()));
    }
}

const KEEP_IDS: ImportOptions = ImportOptions { keep_ids: true, strict: false, dry_run: false, resume: false };

fn stored(id: i64, name: &str, category: i64, status: Option<PetStatus>, micros: i64) -> StoredPet {
    let new_pet =
        NewPet::new(PetName::parse(name).expect("a valid name"), CategoryId::new(category)).with_status(status);
    let created_at = CreationTime::parse(micros).expect("a valid time");
    StoredPet { pet: Pet::new(PetId::parse(id).expect("a valid id"), new_pet), created_at }
}

/// Rex without a status, and a cat with characters that both formats have to escape.
fn two_pets() -> Vec<StoredPet> {
    vec![stored(1, "Rex", 1, None, 0), stored(7, "\"a\\b\",猫 ", -2, Some(PetStatus::Sold), 1_795_366_800_123_456)]
}

fn any_pets() -> impl Strategy<Value = Vec<StoredPet>> {
    let name = prop_oneof![
        "[\\PC]{1,255}",
        "[ ,;\"'\\\\#{}=]{0,4}[a-z\"é🐈\u{feff}\u{2028}]",
        select(vec!["#end pets=0 sha256=x".to_owned(), "null".to_owned(), "=1+1".to_owned(), "🐈".repeat(255)]),
    ]
    .prop_filter_map("a valid name", |name| PetName::parse(&name).ok().map(|_| name));
    let members = (name, any::<i64>(), option::of(select(&PetStatus::ALL[..])), 0..=253_402_300_799_999_999_i64);
    btree_map(1..=i64::MAX, members, 0..20).prop_map(|pets| {
        pets.into_iter()
            .map(|(id, (name, category, status, micros))| stored(id, &name, category, status, micros))
            .collect()
    })
}

async fn storage(pets: &[StoredPet]) -> Arc<MemoryBulkStorage> {
    let pets = pets.iter().map(|StoredPet { pet, created_at }| BulkPet {
        id: Some(pet.id()),
        pet: pet.new_pet().clone(),
        created_at: Some(*created_at),
    });
    let storage = MemoryBulkStorage::default();
    let batch = PetBatch { pets: pets.collect(), refuse_taken_ids: true, step: None };
    storage.add_pets(batch).await.expect("add_pets");
    Arc::new(storage)
}

async fn pets(storage: &MemoryBulkStorage) -> Vec<StoredPet> {
    storage.snapshot().await.expect("snapshot").pets(None, usize::MAX).await.expect("pets")
}

/// 2026-11-22T17:00:00Z
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(498_713)
}

async fn export(pets: &[StoredPet], format: FileFormat) -> (Vec<u8>, PetsDigest) {
    let file = SharedBytes::default();
    let mut sink = format.create(Box::new(file.clone()), now()).expect("create");
    let use_case = ExportPets::new(storage(pets).await);
    let summary = use_case.execute(&mut *sink, &mut Observer::default()).await.expect("export");
    (file.bytes(), summary.digest)
}

async fn import(
    storage: &Arc<MemoryBulkStorage>,
    file: &[u8],
    format: FileFormat,
    options: ImportOptions,
) -> (Result<ImportSummary, ImportError>, Vec<(u64, String)>) {
    let mut observer = Observer::default();
    let source = format.open(Box::new(io::Cursor::new(file.to_vec()))).expect("the beginning of a file");
    let imported = ImportPets::new(storage.clone()).execute(source, options, &mut observer).await;
    (imported, observer.refused)
}

/// Returns the lines of a file.
fn read(file: &[u8], format: FileFormat, ids: bool) -> Result<Vec<PetLine>, PetFileError> {
    let mut source = format.open(Box::new(io::Cursor::new(file.to_vec())))?;
    let mut lines = Vec::new();
    while let Some(line) = source.next_line(ids)? {
        lines.push(line);
    }
    Ok(lines)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}
