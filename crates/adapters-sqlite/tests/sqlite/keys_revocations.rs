//! How long a revoked key is still accepted. Time counts from the moment when the store has confirmed the revocation.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_adapter_kit::ApiKeySnapshot;
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ports::{AddPet, ApiKeyStore, PetRepository, Readiness},
    test_support::new_pet,
};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::{
    child,
    keys_support::{Keys, add, find, revoke},
    store::{Store, TIMEOUT, log_of, open, pause, wait_until},
};

/// The longest time for which a revoked key may be accepted.
const BOUND: Duration = Duration::from_millis(100);

/// Runs in another process. Revokes the key with the greatest id, and prints the moment of the confirmation.
pub(crate) fn revoke_the_last_key(path: &Path) {
    let store = SqliteApiKeyStore::new(open(path));
    let revocation = async {
        let id = store.list().await.expect("list").pop().expect("a key").key.id;
        store.change(revoke(id.as_str())).await.expect("revoke");
    };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(revocation);
    let confirmed = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    writeln!(io::stdout(), "\nconfirmed {}", confirmed.as_micros()).expect("written");
}

/// Revokes a key in another process. Returns the moment of the confirmation.
async fn revoke_in_another_process(path: PathBuf) -> SystemTime {
    let child = spawn_blocking(move || child::command(&[], "revoke", &path).output());
    let Output { status, stdout, .. } = child.await.expect("no panic").expect("a child");
    let stdout = String::from_utf8(stdout).expect("UTF-8");
    assert!(status.success(), "{stdout}");
    let confirmed = stdout.lines().find_map(|line| line.strip_prefix("confirmed ")).expect("a line");
    UNIX_EPOCH + Duration::from_micros(confirmed.parse().expect("a number"))
}

/// Uses a token until it is refused. Returns when the last accepted lookup began. No lookup fails.
async fn last_accepted(directory: &ApiKeySnapshot, token: &str) -> SystemTime {
    let start = SystemTime::now();
    let mut last = start;
    loop {
        let began = SystemTime::now();
        if find(directory, token).await.expect("found").is_none() {
            return last;
        }
        last = began;
        assert!(began.duration_since(start).unwrap_or_default() < TIMEOUT, "{token} is not refused");
        pause().await;
    }
}

fn assert_within_bound(last_accepted: SystemTime, confirmed: SystemTime) {
    let window = last_accepted.duration_since(confirmed).unwrap_or_default();
    assert!(window < BOUND, "accepted {window:?} after the confirmation");
}

/// Each of the creates changes the file, so that only the version shows which commit has changed the keys. The other
/// process needs the write lock, which is hardly ever free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_creates_commit_a_key_that_another_process_revokes_is_refused_within_the_bound() {
    let store = Store::new();
    let file = open(&store.path());
    let keys = SqliteApiKeyStore::new(file.clone());
    let directory = Arc::new(keys.start_directory(&mut Registry::default()).0);
    let stop = Arc::new(AtomicBool::new(false));
    let creates: Vec<_> = (0..8)
        .map(|_| {
            let (repository, stop) = (Arc::clone(&store.repository), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    repository.add(AddPet::new(new_pet())).await.expect("added");
                    count += 1;
                }
                count
            })
        })
        .collect();
    for number in 0..5 {
        let (id, token) = (format!("key-{number}"), format!("token-{number}"));
        keys.change(add(&id, &token)).await.expect("add");
        wait_until("the key is found", async || find(&directory, &token).await.expect("found").is_some()).await;
        let uses = tokio::spawn({
            let directory = Arc::clone(&directory);
            async move { last_accepted(&directory, &token).await }
        });
        let confirmed = revoke_in_another_process(store.path()).await;
        assert_within_bound(uses.await.expect("no panic"), confirmed);
    }
    stop.store(true, Ordering::Relaxed);
    for create in creates {
        assert!(create.await.expect("no panic") > 0);
    }
}

/// A file is closed after its last connection.
#[tokio::test]
async fn a_directory_that_is_dropped_has_closed_its_connection() {
    let keys = Keys::new();
    let (directory, end) = keys.store.start_directory(&mut Registry::default());
    directory.check().await.expect("ready");
    let log = log_of(&keys.path());
    let Keys { file, store, folder: _folder } = keys;
    drop((file, store));
    assert!(log.exists());
    drop(directory);
    end.await.expect("no panic");
    assert!(!log.exists());
}
