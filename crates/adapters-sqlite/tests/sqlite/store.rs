//! A storage in a folder of its own.

use std::{
    fmt::Debug,
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
    ports::{AddPet, AddPetError, PetRepository, Readiness, StoreResult},
    test_support::pet_named,
};
use animal_store_domain::{Pet, PetId};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub(crate) use animal_store_app::test_support::wait_until;

/// The timeout of the tests that do not wait for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn settings() -> SqliteSettings {
    SqliteSettings {
        timeout: TIMEOUT,
        max_waiting_reads: 2000,
        max_waiting_creates: 1000,
        idempotency_retention: Duration::from_hours(24),
    }
}

/// Opens a file, and creates it if it does not exist.
pub(crate) fn open(path: &Path) -> SqliteFile {
    SqliteFile::open(path, FileUse::Create, TIMEOUT).expect("a file")
}

/// Every way to open an existing file.
pub(crate) fn open_in_each_way(path: &Path) -> [Result<(), SqliteFileError>; 5] {
    [
        SqliteFile::open(path, FileUse::Create, TIMEOUT).map(drop),
        SqliteFile::open(path, FileUse::Write, TIMEOUT).map(drop),
        SqliteFile::open(path, FileUse::Read, TIMEOUT).map(drop),
        SqliteFile::migrate(path, TIMEOUT).map(drop),
        SqliteFile::pending(path).map(drop),
    ]
}

/// Asserts that each way to open the path fails with this text, and changes neither the file nor its log.
#[track_caller]
pub(crate) fn assert_refused(path: &Path, text: &str) {
    let before = files(path);
    for opened in open_in_each_way(path) {
        let error = opened.expect_err("refused");
        assert!(
            error
                .to_string()
                .starts_with(&format!("{}: ", path.display())),
            "{error}"
        );
        assert!(error.to_string().contains(text), "{error}");
        assert!(files(path) == before, "the file or the log has changed");
    }
}

/// Asserts that a call, or the error of one, says that the file is unavailable, so that nothing was changed.
#[track_caller]
pub(crate) fn assert_unavailable(result: &dyn Debug) {
    let text = format!("{result:?}");
    assert!(
        !text.starts_with("Ok(") && text.contains("Unavailable("),
        "{text}"
    );
}

/// Returns the inodes and contents of a file and its log. An empty log is none: SQLite makes one when it reads a file.
pub(crate) fn files(path: &Path) -> [Option<(u64, Option<Vec<u8>>)>; 2] {
    let content = |path: &Path| {
        path.metadata()
            .ok()
            .map(|metadata| (metadata.ino(), fs::read(path).ok()))
    };
    [
        content(path),
        content(&log_of(path))
            .filter(|(_, content)| content.as_ref().is_some_and(|log| !log.is_empty())),
    ]
}

/// Copies a file that is in use and all files beside it, as they would be after a crash. Another process copies them: a
/// process that closes a file loses all its locks of it, also those of SQLite.
pub(crate) fn copy_of_crash(path: &Path) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(path.with_file_name("."))
        .arg(folder.path())
        .status();
    assert!(copied.expect("cp").success());
    let copy = folder.path().join(path.file_name().expect("a name"));
    (folder, copy)
}

/// Returns the path of the log of a file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    format!("{}-wal", path.display()).into()
}

/// Returns the permissions of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o777
}

/// Returns the names of the files in a folder, in their order.
pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
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
        Self::at(TempDir::new().expect("a folder"), settings)
    }

    pub(crate) fn at(folder: TempDir, settings: SqliteSettings) -> Self {
        let store = Self::on(&folder.path().join("pets.db"), settings);
        Self {
            folder: Some(folder),
            ..store
        }
    }

    /// Uses a file that another storage may use.
    pub(crate) fn on(path: &Path, settings: SqliteSettings) -> Self {
        Self::over(
            SqliteFile::open(path, FileUse::Create, settings.timeout).expect("a file"),
            settings,
        )
    }

    pub(crate) fn over(file: SqliteFile, settings: SqliteSettings) -> Self {
        let mut registry = Registry::default();
        file.register_metrics(&mut registry);
        let (storage, threads) =
            SqliteStorage::start(&file, settings, &mut registry).expect("a storage");
        let (repository, readiness) = (Arc::new(storage.repository()), storage.readiness());
        Self {
            repository,
            readiness,
            threads,
            file,
            registry,
            folder: None,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    pub(crate) async fn add(&self, name: &str) -> Pet {
        self.try_add(name).await.expect("added")
    }

    pub(crate) fn try_add(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Pet, AddPetError>> + Send + use<> {
        let (repository, pet) = (Arc::clone(&self.repository), pet_named(name));
        async move {
            repository
                .add(AddPet::new(pet))
                .await
                .map(|added| added.pet)
        }
    }

    pub(crate) async fn count(&self) -> usize {
        self.repository
            .list(None, None, usize::MAX)
            .await
            .expect("listed")
            .len()
    }

    pub(crate) async fn find(&self, id: i64) -> Option<Pet> {
        self.try_find(id).await.expect("found")
    }

    pub(crate) async fn try_find(&self, id: i64) -> StoreResult<Option<Pet>> {
        let id = PetId::parse(id).expect("1 or greater");
        self.repository.find(id).await
    }

    /// The names of the first pets.
    pub(crate) async fn names(&self) -> Vec<String> {
        let pets = self
            .repository
            .list(None, None, 1000)
            .await
            .expect("listed");
        pets.iter()
            .map(|pet| pet.new_pet().name().as_str().to_owned())
            .collect()
    }

    /// Returns the value of a sample of the metrics, rounded.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        let value = value.unwrap_or_else(|| panic!("no {sample}: {text}"));
        value.parse().expect("a whole number")
    }

    /// Ends the storage. Returns its folder, or an empty one if the file is of another storage.
    pub(crate) async fn close(self) -> TempDir {
        drop(self.repository);
        self.threads.await.expect("the threads have ended");
        self.folder
            .unwrap_or_else(|| TempDir::new().expect("a folder"))
    }
}

pub(crate) async fn repository(
    idempotency_retention: Duration,
) -> (Arc<dyn PetRepository>, TempDir) {
    let Store {
        repository, folder, ..
    } = Store::with(SqliteSettings {
        idempotency_retention,
        ..settings()
    });
    (repository, folder.expect("its own"))
}
