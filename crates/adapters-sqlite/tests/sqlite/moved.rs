//! A file that is moved, removed, replaced or not believed, or whose log or index is: no pet that was confirmed is lost.

use animal_store_adapter_kit::{
    ApiKeySnapshot,
    test_support::{find, wait_for},
};

use crate::prelude::*;

/// A part of the message about a file that is not in place.
pub(crate) const REPLACED: &str = "moved, removed, replaced or overwritten";

/// A storage with everything that uses its file.
pub(crate) struct Service {
    pub(crate) store: Store,
    bulk: SqliteBulkStorage,
    keys: SqliteApiKeyStore,
    directory: ApiKeySnapshot,
}

impl Service {
    async fn start() -> Self {
        Self::over(Store::new()).await
    }

    pub(crate) async fn over(store: Store) -> Self {
        let keys = SqliteApiKeyStore::new(store.file.clone());
        keys.add(&["key"]).await;
        let service = Self {
            bulk: SqliteBulkStorage::new(&store.file),
            directory: keys.directory(),
            keys,
            store,
        };
        service.assert_works().await;
        service
    }

    pub(crate) async fn assert_works(&self) {
        assert_gauge(&self.store, 1);
        self.store.add("Rex").await;
        self.store.readiness.check().await.expect("ready");
        // It keeps its connection.
        self.bulk.check_writable().await.expect("writable");
        wait_for(&self.directory, "key", true).await;
        self.keys.add(&["other"]).await;
        self.keys.revoke("other").await;
    }

    pub(crate) async fn assert_fails(&self) {
        assert_gauge(&self.store, 0);
        assert_fails(self.store.try_add("refused").await, UNAVAILABLE);
        let unready = self.store.readiness.check().await;
        let error = unready.expect_err("not in place").to_string();
        assert!(error.contains(REPLACED), "{error}");
        self.assert_keys_fail().await;
        self.bulk.check_writable().await.expect_err("not in place");
        assert_fails(self.bulk.add_pets(stored_pets([99])).await, UNAVAILABLE);
    }

    async fn assert_keys_fail(&self) {
        let fails = async || {
            let found = find(&self.directory, "key").await;
            matches!(found, Err(StoreFailure::Unavailable(_)))
        };
        wait_until("lookups fail", fails).await;
        self.directory.check().await.expect_err("unavailable");
        let add = key_changes::add("other", "other", None);
        assert_fails(self.keys.change(add, "test").await, UNAVAILABLE);
    }
}

/// A scrape checks the file, before any request does.
fn assert_gauge(store: &Store, expected: u64) {
    assert_eq!(store.metric("sqlite_file_in_place"), expected);
}

/// What takes the place of a file.
type Replacement = (&'static str, fn(&Path));

const REPLACEMENTS: [Replacement; 4] = [
    ("nothing", |_| ()),
    ("an empty file", |path| {
        write(path, "");
    }),
    ("another database", |path| {
        sql::execute(path, "CREATE TABLE other (id)");
    }),
    ("a folder", |path| fs::create_dir(path).expect("created")),
];

/// A file in another folder than its log.
struct Moved {
    path: PathBuf,
    folder: TempDir,
}

impl Moved {
    /// The replacement is made before the log is back: another program could remove the log.
    fn new(path: &Path, replace: fn(&Path)) -> Self {
        let folder = new_folder();
        let log = folder.path().join("log");
        rename(path, folder.path().join("file"));
        rename(log_of(path), &log);
        replace(path);
        rename(&log, log_of(path));
        Self {
            path: path.to_owned(),
            folder,
        }
    }

    fn move_back(self) {
        if self.path.is_dir() {
            fs::remove_dir(&self.path).expect("removed");
        }
        rename(self.folder.path().join("file"), &self.path);
    }
}

/// The writer has no connection then.
#[tokio::test]
async fn a_first_create_fails_at_once_if_the_file_is_not_in_place() {
    let store = Store::new();
    let _moved = Moved::new(&store.path(), |_| ());
    assert_fails(store.try_add("refused").await, UNAVAILABLE);
}

#[tokio::test]
async fn while_the_file_is_not_in_place_nothing_is_added_or_looked_up_and_no_file_is_made() {
    for (name, replace) in REPLACEMENTS {
        let service = Service::start().await;
        let path = service.store.path();
        let moved = Moved::new(&path, replace);
        let before = files(&path);
        service.assert_fails().await;
        assert!(files(&path) == before, "{name}");
        moved.move_back();
        service.assert_works().await;
        assert_eq!(service.store.names().await, ["Rex", "Rex"], "{name}");
    }
}

#[tokio::test]
async fn while_the_log_or_its_index_is_not_in_place_nothing_is_added_or_looked_up() {
    for (path_of, replacement) in [
        (log_of as fn(&Path) -> PathBuf, None),
        (log_of, Some("")),
        (index_of, None),
        (index_of, Some("")),
    ] {
        let service = Service::start().await;
        let path = path_of(&service.store.path());
        let moved = path.with_extension("moved");
        rename(&path, &moved);
        if let Some(content) = replacement {
            write(&path, content);
        }
        service.assert_fails().await;
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), replacement);
        rename(&moved, &path);
        service.assert_works().await;
        assert_eq!(service.store.names().await, ["Rex", "Rex"]);
    }
}

/// After a crash, the next start would write it into the file.
#[tokio::test]
async fn while_a_journal_is_beside_the_file_nothing_is_added_or_looked_up() {
    let service = Service::start().await;
    let journal = format!("{}-journal", service.store.path().display());
    write(&journal, "a journal");
    service.assert_fails().await;
    remove(&journal);
    service.assert_works().await;
}

#[tokio::test]
async fn while_other_users_may_write_the_file_or_one_beside_it_nothing_is_added_or_looked_up() {
    let service = Service::start().await;
    let path = service.store.path();
    for path in [path.clone(), log_of(&path), index_of(&path)] {
        set_mode(&path, 0o606);
        let cause = assert_fails(service.store.try_add("refused").await, UNAVAILABLE);
        assert!(cause.contains("other users can write to"), "{cause}");
        service.assert_keys_fail().await;
        service.store.readiness.check().await.expect_err("unready");
        // The file is there.
        assert_gauge(&service.store, 1);
        set_mode(&path, 0o640);
        service.assert_works().await;
    }
}

/// Another process may have made another index, and added to the log.
#[tokio::test]
async fn a_storage_that_ends_while_the_index_is_not_in_place_keeps_the_log() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    remove(index_of(&path));
    let before = files(&path);
    let _folder = store.close().await;
    assert!(files(&path) == before);
    // In this process, SQLite still has the index.
    let (folder, _) = copy_of_crash(&path);
    assert_eq!(Store::at(folder).names().await, ["Rex"]);
}

#[tokio::test]
async fn a_storage_that_ends_while_its_file_is_not_in_place_loses_nothing() {
    for (name, replace) in REPLACEMENTS {
        let store = Store::new();
        store.add("Rex").await;
        let path = store.path();
        let moved = Moved::new(&path, replace);
        let before = files(&path);
        let folder = store.close().await;
        assert!(files(&path) == before, "{name}");
        moved.move_back();
        assert_eq!(Store::at(folder).names().await, ["Rex"], "{name}");
    }
}
