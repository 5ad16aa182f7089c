//! Creates that fail: what was confirmed stays, and what was not stored is reported as such.

use std::{fs, path::Path};

use animal_store_app::ports::{AddPetError, StoreFailure};
use tempfile::TempDir;

use crate::{
    child, sql,
    store::{Store, settings},
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Adds pets until one fails. Returns the number of confirmed pets, and the error.
async fn add_until_an_error(store: &Store) -> (usize, AddPetError) {
    let mut confirmed = store.count().await;
    loop {
        match store
            .try_add(&format!("{confirmed} {}", "x".repeat(200)))
            .await
        {
            Ok(_) => confirmed += 1,
            Err(error) => return (confirmed, error),
        }
    }
}

pub(crate) fn fill_the_disk(path: &Path) {
    let filler = path.with_file_name("filler");
    fs::write(&filler, vec![0; 1 << 20]).expect("written");
    runtime().block_on(async {
        let store = Store::on(path, settings());
        let (confirmed, error) = add_until_an_error(&store).await;
        let AddPetError::Store(StoreFailure::Unavailable(cause)) = error else {
            panic!("{error:?}")
        };
        assert!(cause.to_string().contains("full"), "{cause}");
        assert_eq!(
            store.count().await,
            confirmed,
            "reads go on, and nothing is lost"
        );
        store.close().await;
        let store = Store::on(path, settings());
        assert_eq!(store.count().await, confirmed, "so they do after a start");
        store.close().await;
        fs::remove_file(filler).expect("removed");
        let store = Store::on(path, settings());
        assert_eq!(store.count().await, confirmed);
        store.add("later").await;
        store.close().await;
    });
}

#[test]
fn a_full_disk_refuses_creates_and_loses_nothing() {
    let folder = TempDir::new().expect("a folder");
    let mounts = "mount -t tmpfs -o size=20m none \"$(dirname \"$0\")\"";
    child::run_with_mounts(mounts, "full disk", &folder.path().join("pets.db"));
}

pub(crate) fn add_until_a_write_fails(path: &Path) {
    runtime().block_on(async {
        let store = Store::on(path, settings());
        let (confirmed, error) = add_until_an_error(&store).await;
        assert!(
            matches!(error, AddPetError::Store(StoreFailure::OutcomeUnknown(_))),
            "{error:?}"
        );
        assert_eq!(
            store.count().await,
            confirmed,
            "reads go on, and nothing is lost"
        );
        fs::write(path.with_file_name("confirmed"), confirmed.to_string()).expect("written");
        store.close().await;
    });
}

/// The operating system refuses to let the files grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_fails_loses_no_confirmed_pet() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    child::run(
        &[
            "sh",
            "-c",
            "trap '' XFSZ; ulimit -f 4000; exec \"$@\"",
            "sh",
        ],
        "write error",
        &path,
    );
    let confirmed: usize = fs::read_to_string(path.with_file_name("confirmed"))
        .unwrap()
        .parse()
        .unwrap();
    let store = Store::at(folder, settings());
    // The log has no end of the last transaction.
    assert_eq!(store.count().await, confirmed);
    assert!(confirmed > 100);
}

/// The trigger makes a row whose foreign key is checked by the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_fails_has_an_unknown_outcome_which_is_counted_once() {
    let store = Store::new();
    sql::execute(
        &store.path(),
        "CREATE TABLE none (id INTEGER PRIMARY KEY);
        CREATE TABLE other (id INTEGER REFERENCES none DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER added AFTER INSERT ON pets BEGIN INSERT INTO other VALUES (1); END;",
    );
    let error = store.try_add("Rex").await.expect_err("not committed");
    assert!(
        matches!(error, AddPetError::Store(StoreFailure::OutcomeUnknown(_))),
        "{error:?}"
    );
    let failures = store.metric("storage_failures_total{reason=\"outcome_unknown\"}");
    assert_eq!(failures, 1);
    sql::execute(&store.path(), "DROP TRIGGER added");
    store.add("Tom").await;
    assert_eq!(store.names().await, ["Tom"]);
}
