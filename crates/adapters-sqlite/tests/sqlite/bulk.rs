//! Bulk access and backups. The contract owns the other rules.

use crate::{child, prelude::*};
use animal_store_app::{
    ports::StoredPet,
    test_support::{api_key, pet_named},
};
use animal_store_domain::PetStatus;

fn new_storage() -> (SqliteBulkStorage, SqliteFile, TempDir) {
    let (folder, path) = new_path();
    let file = open(&path);
    (SqliteBulkStorage::new(&file), file, folder)
}

async fn all(storage: &SqliteBulkStorage) -> Vec<StoredPet> {
    let snapshot = storage.snapshot().await.expect("a snapshot");
    snapshot.pets(None, 1000).await.expect("pets")
}

#[tokio::test]
async fn an_invalid_row_is_reported_with_its_id() {
    for (statement, problem) in [
        ("INSERT INTO pets VALUES (5, ' ', 1, NULL, 0)", "id 5"),
        ("INSERT INTO pets VALUES (-5, 'Rex', 1, NULL, 0)", "id -5"),
        ("INSERT INTO pets VALUES (5, 'Rex', 1, NULL, -1)", "id 5"),
    ] {
        let (storage, file, _folder) = new_storage();
        sql::execute(file.path(), statement);
        let snapshot = storage.snapshot().await.expect("a snapshot");
        let cause = assert_fails(snapshot.pets(None, 10).await, CORRUPT);
        assert!(cause.contains(problem), "{statement}: {cause}");
    }
}

#[tokio::test]
async fn a_page_with_a_row_that_a_trigger_suppresses_is_not_written() {
    let (storage, file, _folder) = new_storage();
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON pets WHEN NEW.id = 9 BEGIN SELECT RAISE(IGNORE); END";
    sql::execute(file.path(), trigger);
    let added = storage.add_pets(stored_pets([8, 9, 10])).await;
    let cause = assert_fails(added, UNAVAILABLE);
    assert!(cause.contains("a trigger suppressed a row"), "{cause}");
    assert_eq!(all(&storage).await, []);
}

/// Adds pets with and without a status in turn, so that a statement changes many pages. Runs in another process.
pub(crate) async fn add_many_pets(path: &Path) {
    let storage = SqliteBulkStorage::new(&open(path));
    let long = pet_named(&"x".repeat(200));
    let statuses = PetStatus::ALL.map(Some).into_iter().chain([None]);
    for page in 0..8 {
        let mut pets = stored_pets((1..=2_500).map(|number| page * 2_500 + number));
        for (stored, status) in pets.iter_mut().zip(statuses.clone().cycle()) {
            stored.pet = Pet::new(stored.pet.id(), long.clone().with_status(status));
        }
        assert!(storage.add_pets(pets).await.expect("added"));
    }
}

/// As in a container with a read-only root.
#[test]
fn pets_are_added_where_only_the_folder_of_the_file_can_be_written() {
    let (_folder, path) = new_path();
    let mounts = "unset TMPDIR SQLITE_TMPDIR; d=$(dirname \"$0\"); mount --bind \"$d\" \"$d\"; \
                  for t in /tmp /var/tmp; do mount --rbind $t $t; mount -o remount,bind,ro $t; done; cd /tmp";
    child::run_with_mounts(mounts, "no temporary files", &path);
}

/// The path of a backup in a folder of its own.
fn new_backup() -> (TempDir, PathBuf) {
    let folder = new_folder();
    let path = folder.path().join("backup.db");
    (folder, path)
}

#[track_caller]
fn assert_is_backup(path: &Path) {
    assert_eq!(files_in(path.parent().expect("a folder")), ["backup.db"]);
    assert_eq!(mode(path), 0o600);
    let content = read(path);
    assert_eq!(content[18..20], [1, 1], "the journal mode is not WAL");
}

#[tokio::test]
async fn a_backup_is_one_file_for_its_owner_and_a_store_of_its_own() {
    let (storage, file, _folder) = new_storage();
    storage.add_pets(stored_pets([1, 7])).await.expect("added");
    let keys = SqliteApiKeyStore::new(file.clone());
    keys.add(&["key"]).await;
    let read_only = SqliteFile::open(file.path(), FileUse::Read, TIMEOUT).expect("a file");
    for file in [file.clone(), read_only] {
        let (_folder, path) = new_backup();
        let backup = NewBackup::create(&path).expect("a backup");
        assert_eq!(backup.vacuum_from(file).await.expect("written"), 2);
        backup.finish().expect("finished");
        assert_is_backup(&path);

        let copy = SqliteFile::open(&path, FileUse::Write, TIMEOUT);
        let copy = copy.expect("no migration is pending");
        let pets = all(&SqliteBulkStorage::new(&copy)).await;
        assert_eq!(pets, stored_pets([1, 7]));
        let copied = SqliteApiKeyStore::new(copy.clone());
        let listed = keys.list().await.expect("listed");
        assert_eq!(copied.list().await.expect("listed"), listed);
        let token = key_changes::new_token("first", None);
        let first = copied.add_first(api_key("first"), token, "test").await;
        assert!(!first.expect("no key"));
        let store = Store::over(copy, settings());
        assert_eq!(store.add("Rex").await.id().get(), 8);
        store.close().await;
    }
}

/// Runs in another process.
pub(crate) fn create_partial_backup(path: &Path) {
    let backup = NewBackup::create(path).expect("a backup");
    let partial = backup.path();
    assert_eq!(mode(partial.parent().expect("a folder")), 0o700);
}

#[test]
fn the_folder_of_a_partial_backup_is_closed_under_any_umask() {
    for umask in ["umask 0", "umask 0777"] {
        let (_folder, path) = new_backup();
        child::run_after(umask, "partial backup", &path);
    }
}

/// A copy from PostgreSQL writes its backup in this way.
#[tokio::test]
async fn a_backup_can_be_written_as_a_store() {
    let (_folder, path) = new_backup();
    let backup = NewBackup::create(&path).expect("a backup");
    let storage = SqliteBulkStorage::new(&open(&backup.path()));
    storage.add_pets(stored_pets([3])).await.expect("added");
    drop(storage);
    backup.finish().expect("finished");
    assert_is_backup(&path);
    let pets = all(&SqliteBulkStorage::new(&open(&path))).await;
    assert_eq!(pets, stored_pets([3]));
}

#[tokio::test]
async fn a_backup_replaces_no_file_and_leaves_nothing_if_it_fails_or_is_dropped() {
    let (_, file, _folder) = new_storage();
    let (folder, target) = new_backup();
    let missing = NewBackup::create(&folder.path().join("missing/backup.db"));
    let error = missing.err().expect("no folder").to_string();
    assert!(error.contains("missing/backup.db"), "{error}");

    let backup = NewBackup::create(&target).expect("a backup");
    backup.vacuum_from(file.clone()).await.expect("written");
    assert!(!target.exists(), "it is not complete");
    drop(backup);
    assert_eq!(files_in(folder.path()), [""; 0]);

    let backup = NewBackup::create(&target).expect("a backup");
    backup.vacuum_from(file).await.expect("written");
    write(&target, "other");
    let finished = backup.finish().map(drop);
    for result in [finished, NewBackup::create(&target).map(drop)] {
        let error = result.expect_err("the target exists by now").to_string();
        assert!(error.contains("exists"), "{error}");
    }
    assert_eq!(files_in(folder.path()), ["backup.db"]);
    assert_eq!(fs::read_to_string(&target).expect("read"), "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_cannot_read_its_source_names_the_source() {
    let damage: fn(&Path) = |source| {
        sql::execute(source, "PRAGMA wal_checkpoint");
        sql::overwrite_root(source, "pets");
    };
    let move_away: fn(&Path) = |source| rename(source, source.with_extension("moved"));
    for (spoil, reason) in [
        (damage, "the file is damaged"),
        (move_away, "the file or its log was moved"),
    ] {
        let (storage, file, _folder) = new_storage();
        storage.add_pets(stored_pets([3])).await.expect("added");
        let source = file.path();
        spoil(source);
        let (_folder, target) = new_backup();
        let backup = NewBackup::create(&target).expect("a backup");
        let written = backup.vacuum_from(file.clone()).await;
        let error = written.expect_err(reason).to_string();
        let start = format!("{}: {reason}", source.display());
        assert!(error.starts_with(&start), "{error}");
    }
}
