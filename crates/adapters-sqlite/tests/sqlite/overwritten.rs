//! A file or a log that is overwritten in place, so that it keeps its inode: no create is confirmed and lost.

use std::{
    os::unix::fs::MetadataExt,
    process::{self, Command},
};

use crate::{moved::Service, prelude::*};

/// What can take the place of the content, by shell commands in the folder: a process that closes a file loses all its
/// locks of it. `backup.db` is a backup of the file, `copy.db` the same file before it grew, `other.db` another store,
/// `foreign.db` a database of another program, and `old.log` and `last.log` the log before and after it began again.
const OVERWRITES: [&str; 18] = [
    "cp backup.db pets.db",
    "cat backup.db > pets.db",
    "dd if=backup.db of=pets.db conv=notrunc status=none",
    "cp other.db pets.db",
    "dd if=other.db of=pets.db conv=notrunc status=none",
    "cp copy.db pets.db",
    "dd if=foreign.db of=pets.db conv=notrunc status=none",
    "truncate -s 4096 pets.db",
    "truncate -s -4096 pets.db",
    ": > pets.db",
    "echo text > pets.db",
    "dd if=/dev/zero of=pets.db conv=notrunc bs=4096 count=1 status=none",
    "cp old.log pets.db-wal",
    "cp last.log pets.db-wal",
    "dd if=old.log of=pets.db-wal conv=notrunc bs=32 count=1 status=none",
    "dd if=old.log of=pets.db-wal conv=notrunc bs=32 skip=1 seek=1 status=none",
    "truncate -s 32 pets.db-wal",
    ": > pets.db-wal",
];

fn run(script: &str, folder: &Path) {
    let done = Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder)
        .status();
    assert!(done.expect("sh").success(), "{script}");
}

fn folder_of(path: &Path) -> &Path {
    path.parent().expect("a folder")
}

/// Returns a service with many pets in the file, beside the other files of [`OVERWRITES`].
async fn service() -> Service {
    let (folder, path) = closed_file();
    drop(open(&folder.path().join("other.db")));
    let foreign = "PRAGMA journal_mode = WAL; CREATE TABLE pets (id)";
    sql::execute(&folder.path().join("foreign.db"), foreign);
    run("cp pets.db copy.db", folder.path());
    let store = Store::at(folder);
    store.add_many().await;
    run("cp pets.db-wal old.log", folder_of(&path));
    sql::execute(&path, "PRAGMA wal_checkpoint");
    let backup = NewBackup::create(&path.with_file_name("backup.db")).expect("created");
    let written = backup.vacuum_from(store.file.clone()).await;
    written.expect("written");
    backup.finish().expect("finished");
    store.add("Rex").await;
    run("cp pets.db-wal last.log", folder_of(&path));
    Service::over(store).await
}

#[tokio::test]
async fn while_the_file_is_overwritten_nothing_is_added_or_looked_up() {
    for script in OVERWRITES {
        let service = service().await;
        let path = service.store.path();
        run(script, folder_of(&path));
        service.assert_fails().await;
        let overwritten = read(&path);
        let log = read(log_of(&path));
        let _folder = service.store.close().await;
        assert!(read(&path) == overwritten, "{script}");
        assert!(read(log_of(&path)) == log, "{script}");
    }
}

/// The content is that of the file, so nothing is lost.
#[tokio::test]
async fn a_file_that_got_its_own_content_or_was_vacuumed_is_in_place() {
    for script in ["cp pets.db same.db; cat same.db > pets.db", "touch pets.db"] {
        let service = service().await;
        run(script, folder_of(&service.store.path()));
        service.assert_works().await;
    }
    let service = service().await;
    for statement in [
        "DELETE FROM pets WHERE id < 400",
        "VACUUM",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ] {
        service.store.execute(statement);
        service.assert_works().await;
    }
}

/// SQLite writes this size as 1.
#[tokio::test]
async fn the_log_of_a_file_with_pages_of_64_kib_is_checked() {
    let (folder, path) = closed_file();
    let enlarge =
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM; PRAGMA journal_mode = WAL";
    sql::execute(&path, enlarge);
    assert_eq!(sql::number(&path, "PRAGMA page_size"), 65536);
    let service = Service::over(Store::at(folder)).await;
    run("truncate -s 32 pets.db-wal", folder_of(&path));
    service.assert_fails().await;
}

/// A restore by SQLite, such as `.restore`, writes the id of the other store into the log, as this does.
#[tokio::test]
async fn a_store_that_sqlite_restores_into_the_file_is_in_place_after_its_checkpoint() {
    let service = service().await;
    for statement in ["PRAGMA user_version = 7", "PRAGMA wal_checkpoint"] {
        service.store.execute(statement);
        service.assert_works().await;
    }
    run("cp other.db pets.db", folder_of(&service.store.path()));
    service.assert_fails().await;
}

#[tokio::test]
async fn after_another_store_was_copied_over_the_file_the_next_start_is_refused() {
    for script in [
        "cp other.db pets.db",
        "dd if=other.db of=pets.db conv=notrunc status=none",
    ] {
        let service = service().await;
        let path = service.store.path();
        service.store.add_many().await;
        run(script, folder_of(&path));
        // In this process, SQLite still has the state of the file.
        let (_folder, path) = copy_of_crash(&path);
        assert_refused(&path, "is missing, empty or replaced");
        remove(log_of(&path));
        drop(open(&path));
    }
}

/// `VACUUM` writes each page into the log, as `.restore` of SQLite does.
#[tokio::test]
async fn a_store_that_sqlite_restored_before_a_crash_is_in_place_at_the_next_start() {
    let service = service().await;
    let path = service.store.path();
    sql::execute(&path, "PRAGMA user_version = 7");
    let (_changed, path_changed) = copy_of_crash(&path);
    assert_refused(&path_changed, "is missing, empty or replaced");
    sql::execute(&path, "VACUUM");
    let (folder, path) = copy_of_crash(&path);
    let store = Store::at(folder);
    assert_eq!(store.count().await, service.store.count().await);
    assert_eq!(sql::number(&path, "PRAGMA user_version"), 7);
}

#[tokio::test]
async fn two_stores_and_a_store_and_its_backup_have_different_ids() {
    let service = service().await;
    let path = service.store.path();
    let id = |name| sql::number(&path.with_file_name(name), "PRAGMA user_version");
    let mut ids: [i64; 4] = ["pets.db", "copy.db", "backup.db", "other.db"].map(id);
    assert_eq!(ids[0], ids[1]);
    ids.sort_unstable();
    let different: Vec<_> = ids.chunk_by(i64::eq).map(<[_]>::len).collect();
    assert_eq!(different.len(), 3, "{ids:?}");
    assert!(ids[0] > 0, "{ids:?}");
}

/// A store of an earlier program gets its id from a migration, while another process may use it.
#[tokio::test]
async fn a_store_that_gets_its_id_is_in_place_and_keeps_the_id() {
    let (folder, path) = closed_file();
    let set = |id| {
        let statements = format!("PRAGMA user_version = {id}; PRAGMA wal_checkpoint");
        sql::execute(&path, &statements);
    };
    set(0);
    let store = Store::at(folder);
    store.add("Rex").await;
    set(7);
    store.add("Tom").await;
    // Not by SQLite, whose log then has no page with this id.
    let overwrite =
        r"printf '\000\000\000\010' | dd of=pets.db bs=1 seek=60 conv=notrunc status=none";
    run(overwrite, folder_of(&path));
    store.try_add("lost").await.expect_err("another id");
}

/// A descriptor that is closed would release the lock of SQLite.
#[tokio::test]
async fn after_a_thousand_checks_sqlite_has_its_locks() {
    let store = Store::new();
    let bulk = SqliteBulkStorage::new(&store.file);
    for id in 1..=1000 {
        bulk.add_pets(stored_pets([id])).await.expect("added");
    }
    let locks = fs::read_to_string("/proc/locks").expect("the locks");
    let of_process = format!(" {} ", process::id());
    for path in [store.path(), index_of(&store.path())] {
        let of_file = format!(":{} ", path.metadata().expect("a file").ino());
        let is_read_lock = |lock: &str| {
            [" READ ", &of_process, &of_file]
                .iter()
                .all(|part| lock.contains(part))
        };
        assert!(locks.lines().any(is_read_lock), "{locks}");
    }
}
