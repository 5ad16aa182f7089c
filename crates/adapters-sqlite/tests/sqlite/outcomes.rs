//! Creates that fail: what was confirmed stays, and what was not stored is reported as such.

use crate::{child, prelude::*};

/// Adds pets until one fails with this text. Returns the number of confirmed pets, and the cause. Reads go on, and
/// nothing is lost.
async fn add_until_an_error(store: &Store, text: &str) -> (usize, String) {
    let mut confirmed = store.count().await;
    let cause = loop {
        let added = store.try_add(&format!("{confirmed} {}", "x".repeat(200)));
        match added.await {
            Ok(_) => confirmed += 1,
            failed => break assert_fails(failed, text),
        }
    };
    assert_eq!(store.count().await, confirmed);
    (confirmed, cause)
}

/// Runs in another process.
pub(crate) async fn fill_the_disk(path: &Path) {
    let filler = path.with_file_name("filler");
    write(&filler, vec![0; 1 << 20]);
    let store = Store::on(path);
    let (confirmed, cause) = add_until_an_error(&store, UNAVAILABLE).await;
    assert!(cause.contains("full"), "{cause}");
    store.close().await;

    let store = Store::on(path);
    assert_eq!(store.count().await, confirmed, "reads go on after a start");
    store.close().await;

    remove(filler);
    let store = Store::on(path);
    assert_eq!(store.count().await, confirmed);
    store.add("later").await;
    store.close().await;
}

#[test]
fn a_full_disk_refuses_creates_and_loses_nothing() {
    let (_folder, path) = new_path();
    let mounts = "mount -t tmpfs -o size=20m none \"$(dirname \"$0\")\"";
    child::run_with_mounts(mounts, "full disk", &path);
}

/// Runs in another process.
pub(crate) async fn add_until_a_write_fails(path: &Path) {
    let store = Store::on(path);
    let (confirmed, _) = add_until_an_error(&store, UNKNOWN).await;
    write(path.with_file_name("confirmed"), confirmed.to_string());
    store.close().await;
}

/// The operating system refuses to let the files grow.
#[tokio::test]
async fn a_write_that_fails_loses_no_confirmed_pet() {
    let (folder, path) = new_path();
    let limit = "trap '' XFSZ; ulimit -f 4000";
    child::run_after(limit, "write error", &path);
    let confirmed = fs::read_to_string(path.with_file_name("confirmed")).expect("read");
    let confirmed = confirmed.parse().expect("a number");
    let store = Store::at(folder);
    // The log has no end of the last transaction.
    assert_eq!(store.count().await, confirmed);
    assert!(confirmed > 100);
}

/// The trigger makes a row whose foreign key is checked by the commit.
#[tokio::test]
async fn a_commit_that_fails_has_an_unknown_outcome_which_is_counted_once() {
    let store = Store::new();
    store.execute(
        "CREATE TABLE none (id INTEGER PRIMARY KEY);
        CREATE TABLE other (id INTEGER REFERENCES none DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER added AFTER INSERT ON pets BEGIN INSERT INTO other VALUES (1); END;",
    );
    assert_fails(store.try_add("Rex").await, UNKNOWN);
    assert_eq!(store.failures("outcome_unknown"), 1);
    store.execute("DROP TRIGGER added");
    store.add("Tom").await;
    assert_eq!(store.names().await, ["Tom"]);
}
