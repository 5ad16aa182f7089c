//! A storage in a folder of its own.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use animal_store_adapters_sqlite::{
    FileUse, SqliteFile, SqliteFileError, SqlitePetRepository, SqliteSettings, SqliteStorage,
};
use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, PetRepository, Readiness, StoreResult},
    test_support::{api_key_id, join_tasks, pet_named},
};
use animal_store_domain::{Pet, PetId};
use diesel::SqliteConnection;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{disk::new_folder, sql};

/// The timeout of the tests that do not wait for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) type AddResult = Result<Pet, AddPetError>;

pub(crate) fn settings() -> SqliteSettings {
    SqliteSettings {
        timeout: TIMEOUT,
        max_waiting_reads: 2000,
        max_waiting_creates: 1000,
        idempotency_retention: Duration::from_hours(24),
    }
}

/// The path `pets.db` in a folder of its own.
pub(crate) fn new_path() -> (TempDir, PathBuf) {
    let folder = new_folder();
    let path = path_in(&folder);
    (folder, path)
}

pub(crate) fn path_in(folder: &TempDir) -> PathBuf {
    folder.path().join("pets.db")
}

/// A closed file in a folder of its own.
pub(crate) fn closed_file() -> (TempDir, PathBuf) {
    let (folder, path) = new_path();
    drop(open(&path));
    (folder, path)
}

/// Opens a file, and creates it if it does not exist.
pub(crate) fn open(path: &Path) -> SqliteFile {
    SqliteFile::open(path, FileUse::Create, TIMEOUT).expect("a file")
}

/// Every way to open an existing file.
pub(crate) fn open_in_each_way(path: &Path) -> [Result<(), SqliteFileError>; 5] {
    let open = |usage| SqliteFile::open(path, usage, TIMEOUT).map(drop);
    [
        open(FileUse::Create),
        open(FileUse::Write),
        open(FileUse::Read),
        SqliteFile::migrate(path, TIMEOUT).map(drop),
        SqliteFile::pending(path).map(drop),
    ]
}

/// Asserts that each way to open the path fails with this text, and changes neither the file nor its log.
#[track_caller]
pub(crate) fn assert_refused(path: &Path, text: &str) {
    let before = files(path);
    let start = format!("{}: ", path.display());
    for opened in open_in_each_way(path) {
        let error = opened.expect_err("refused").to_string();
        assert!(error.starts_with(&start) && error.contains(text), "{error}");
        assert!(files(path) == before, "the file or the log has changed");
    }
}

/// Returns the inodes and contents of a file and its log. An empty log is none: SQLite makes one when it reads a file.
pub(crate) fn files(path: &Path) -> [Option<(u64, Option<Vec<u8>>)>; 2] {
    let content = |path: &Path| {
        let inode = path.metadata().ok()?.ino();
        Some((inode, fs::read(path).ok()))
    };
    let log = content(&log_of(path));
    let log = log.filter(|(_, content)| content.as_deref().is_some_and(|log| !log.is_empty()));
    [content(path), log]
}

/// Copies a file that is in use and all files beside it, as they would be after a crash. Another process copies them: a
/// process that closes a file loses all its locks of it, also those of SQLite.
pub(crate) fn copy_of_crash(path: &Path) -> (TempDir, PathBuf) {
    let (folder, copy) = new_path();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(path.with_file_name("."))
        .arg(folder.path())
        .status();
    assert!(copied.expect("cp").success());
    (folder, copy)
}

/// Returns the path of the log of a file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    format!("{}-wal", path.display()).into()
}

/// Returns the path of the index of the log.
pub(crate) fn index_of(path: &Path) -> PathBuf {
    format!("{}-shm", path.display()).into()
}

/// Returns the permissions of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o777
}

/// Returns the names of the files in a folder, in their order.
pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in folder.read_dir().expect("a folder") {
        let name = entry.expect("an entry").file_name();
        names.push(name.into_string().expect("UTF-8"));
    }
    names.sort();
    names
}

/// A request for a pet whose name is its idempotency key.
pub(crate) fn request(name: &str) -> AddPet {
    AddPet {
        pet: pet_named(name),
        idempotency_key: Some(IdempotencyKey::new(api_key_id("shop"), name)),
    }
}

/// A storage in the file `pets.db` of a folder.
pub(crate) struct Store {
    pub(crate) repository: Arc<SqlitePetRepository>,
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) threads: JoinHandle<()>,
    pub(crate) file: SqliteFile,
    registry: Registry,
    /// `None` if the file is of another storage.
    folder: Option<TempDir>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: SqliteSettings) -> Self {
        let (folder, path) = new_path();
        Self {
            folder: Some(folder),
            ..Self::over(open(&path), settings)
        }
    }

    pub(crate) fn at(folder: TempDir) -> Self {
        let store = Self::on(&path_in(&folder));
        Self {
            folder: Some(folder),
            ..store
        }
    }

    /// Uses a file that another storage may use.
    pub(crate) fn on(path: &Path) -> Self {
        Self::over(open(path), settings())
    }

    pub(crate) fn over(file: SqliteFile, settings: SqliteSettings) -> Self {
        let mut registry = Registry::default();
        file.register_metrics(&mut registry);
        let started = SqliteStorage::start(&file, settings, &mut registry);
        let (storage, threads) = started.expect("a storage");
        Self {
            repository: Arc::new(storage.repository()),
            readiness: storage.readiness(),
            threads,
            file,
            registry,
            folder: None,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    /// Runs statements of another program.
    pub(crate) fn execute(&self, statements: &str) {
        sql::execute(self.file.path(), statements);
    }

    /// Returns the only value that another program reads.
    pub(crate) fn number(&self, query: &str) -> i64 {
        sql::number(self.file.path(), query)
    }

    /// Holds the lock of a process that writes, until it is dropped.
    pub(crate) fn lock(&self) -> SqliteConnection {
        sql::lock(self.file.path())
    }

    pub(crate) async fn add(&self, name: &str) -> Pet {
        self.try_add(name).await.expect("added")
    }

    pub(crate) fn try_add(&self, name: &str) -> impl Future<Output = AddResult> + Send + use<> {
        let repository = Arc::clone(&self.repository);
        let request = AddPet::new(pet_named(name));
        async move { repository.add(request).await.map(|added| added.pet) }
    }

    /// Adds 1000 pets that take several hundred pages.
    pub(crate) async fn add_many(&self) {
        let adds = (0..1000).map(|number| self.try_add(&format!("{number} {}", "x".repeat(200))));
        for added in join_tasks(adds).await {
            added.expect("added");
        }
    }

    pub(crate) async fn list(&self) -> Vec<Pet> {
        let pets = self.repository.list(None, None, usize::MAX).await;
        pets.expect("listed")
    }

    pub(crate) async fn count(&self) -> usize {
        self.list().await.len()
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for pet in self.list().await {
            names.push(pet.new_pet().name().as_str().to_owned());
        }
        names
    }

    pub(crate) async fn find(&self, id: i64) -> Option<Pet> {
        self.try_find(id).await.expect("found")
    }

    pub(crate) async fn try_find(&self, id: i64) -> StoreResult<Option<Pet>> {
        let id = PetId::parse(id).expect("1 or greater");
        self.repository.find(id).await
    }

    /// Returns the value of a sample of the metrics, rounded.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        value.expect(&text).parse().expect("a whole number")
    }

    /// Returns the number of creates that failed for this reason.
    pub(crate) fn failures(&self, reason: &str) -> u64 {
        self.metric(&format!("storage_failures_total{{reason=\"{reason}\"}}"))
    }

    /// Ends the storage. Returns its folder, or an empty one if the file is of another storage.
    pub(crate) async fn close(self) -> TempDir {
        drop(self.repository);
        self.threads.await.expect("the threads have ended");
        self.folder.unwrap_or_else(new_folder)
    }
}

pub(crate) async fn repository(
    idempotency_retention: Duration,
) -> (Arc<dyn PetRepository>, TempDir) {
    let store = Store::with(SqliteSettings {
        idempotency_retention,
        ..settings()
    });
    (store.repository, store.folder.expect("its own"))
}
