//! Files, and values for bulk access.

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use animal_store_adapters_sqlite::{SqliteBulkStorage, SqliteFile};
use animal_store_app::{
    ports::{BulkPet, BulkStorage, ImportProgress, ImportSource, ImportStep, PetBatch, StoredPet},
    test_support::pet_named,
};
use animal_store_domain::{CreationTime, PetId};
use tempfile::TempDir;

/// Long enough for any operation on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A new folder, and the file in it.
pub(crate) fn new_file() -> (SqliteFile, TempDir) {
    let folder = TempDir::new().expect("a folder");
    (open(&folder.path().join("store.db")), folder)
}

pub(crate) fn open(path: &Path) -> SqliteFile {
    SqliteFile::open(path, TEST_TIMEOUT).expect("a file")
}

pub(crate) fn new_storage() -> (Arc<SqliteBulkStorage>, TempDir) {
    let (file, folder) = new_file();
    (Arc::new(SqliteBulkStorage::new(file)), folder)
}

pub(crate) fn id(id: i64) -> PetId {
    PetId::parse(id).expect("1 or greater")
}

pub(crate) fn bulk_pet(id: Option<i64>, name: &str) -> BulkPet {
    let created_at = CreationTime::parse(1_000_000).expect("a time");
    BulkPet { id: id.map(self::id), pet: pet_named(name), created_at: Some(created_at) }
}

/// A batch that refuses taken ids.
pub(crate) fn batch(pets: impl IntoIterator<Item = BulkPet>) -> PetBatch {
    PetBatch { pets: pets.into_iter().collect(), refuse_taken_ids: true, step: None }
}

/// A step from one number of lines to another.
pub(crate) fn step(source: u8, from: Option<u64>, to: u64) -> ImportStep {
    ImportStep { source: ImportSource([source; 32]), from: from.map(progress), to: progress(to) }
}

pub(crate) fn progress(lines: u64) -> ImportProgress {
    ImportProgress { lines, digest: [u8::try_from(lines).expect("a small number"); 32], finished: false }
}

/// Returns all pets.
pub(crate) async fn all(storage: &SqliteBulkStorage) -> Vec<StoredPet> {
    storage.snapshot().await.expect("a snapshot").pets(None, 1_000_000).await.expect("pets")
}

/// Returns the id and the name of each pet.
pub(crate) async fn names(storage: &SqliteBulkStorage) -> Vec<(i64, String)> {
    let name = |stored: StoredPet| (stored.pet.id().get(), stored.pet.new_pet().name().as_str().to_owned());
    all(storage).await.into_iter().map(name).collect()
}

/// Returns the permissions of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o777
}
