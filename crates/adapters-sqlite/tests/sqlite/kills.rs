//! A process that is killed at any moment.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    sync::Arc,
};

use animal_store_app::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
    test_support::{join_tasks, pet_named},
};
use diesel::connection::SimpleConnection;
use tempfile::TempDir;

use crate::{
    child, sql,
    store::{Store, log_of, settings},
};

fn request(name: &str) -> AddPet {
    let idempotency_key = Some(IdempotencyKey::new(ApiKeyId::new("shop"), name));
    AddPet { pet: pet_named(name), idempotency_key }
}

/// Adds pets and prints each confirmed one, and each one that was not stored.
pub(crate) fn add_until_killed(path: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store = Store::on(path, settings());
        let first = store.count().await;
        join_tasks((0..16).map(|task| {
            let repository = Arc::clone(&store.repository);
            async move {
                for number in 0.. {
                    let name = format!("{first}-{task}-{number}");
                    match repository.add(request(&name)).await {
                        Ok(added) => writeln!(io::stdout(), "confirmed {name} {}", added.pet.id().get()),
                        Err(AddPetError::Store(error)) => writeln!(io::stdout(), "refused {name} {error:?}"),
                        Err(error) => panic!("{name}: {error:?}"),
                    }
                    .expect("written");
                }
            }
        }))
        .await;
    });
}

/// A process that adds pets until it is killed.
pub(crate) struct Adder {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The ids of the confirmed pets, by name. The last one may be incomplete.
    pub(crate) confirmed: BTreeMap<String, String>,
}

impl Adder {
    pub(crate) fn start(path: &Path) -> Self {
        let mut process = child::command(&[], "adds", path).stdout(Stdio::piped()).spawn().expect("started");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, lines, confirmed: BTreeMap::new() }
    }

    /// Reads until this number of pets was confirmed.
    pub(crate) fn read(&mut self, count: usize) {
        while self.confirmed.len() < count {
            let line = self.read_line().expect("the process adds pets");
            assert!(!line.starts_with("refused "), "{line}");
        }
    }

    /// Reads until a pet was not stored. Returns the reason.
    pub(crate) fn read_until_refused(&mut self) -> String {
        loop {
            let line = self.read_line().expect("the process adds pets");
            if line.starts_with("refused ") {
                return line;
            }
        }
    }

    /// Kills the process, and returns all confirmed pets.
    pub(crate) fn kill(mut self) -> BTreeMap<String, String> {
        self.process.kill().expect("killed");
        while self.read_line().is_some() {}
        self.process.wait().expect("ended");
        self.confirmed
    }

    /// Returns the next line, if there is one.
    fn read_line(&mut self) -> Option<String> {
        let line = self.lines.next()?.ok()?;
        if let Some((name, id)) = line.strip_prefix("confirmed ").and_then(|line| line.split_once(' ')) {
            self.confirmed.insert(name.to_owned(), id.to_owned());
        }
        Some(line)
    }
}

/// Returns a file of a process that was killed, with its log, and the confirmed pets.
pub(crate) fn killed_file() -> (TempDir, PathBuf, BTreeMap<String, String>) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut adder = Adder::start(&path);
    adder.read(100);
    let confirmed = adder.kill();
    assert!(log_of(&path).metadata().expect("a log").len() > 0);
    (folder, path, confirmed)
}

/// Returns the ids of all pets, by name.
pub(crate) async fn assert_stored(store: &Store, confirmed: &BTreeMap<String, String>) -> BTreeMap<String, i64> {
    let pets = store.repository.list(None, None, usize::MAX).await.expect("listed");
    let stored: BTreeMap<_, _> =
        pets.iter().map(|pet| (pet.new_pet().name().as_str().to_owned(), pet.id().get())).collect();
    assert_eq!(stored.len(), pets.len(), "one pet per key");
    for (name, id) in confirmed {
        let stored = stored.get(name).unwrap_or_else(|| panic!("{name} is lost"));
        assert!(stored.to_string().starts_with(id), "{name}: {stored}, {id}");
    }
    stored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_and_each_key_has_one_pet() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut confirmed = BTreeMap::new();
    // The first process is killed while it starts, the others after a number of confirmed pets.
    for round in 0..8 {
        let mut adder = Adder::start(&path);
        adder.read(30 * round);
        confirmed.append(&mut adder.kill());
    }
    assert!(confirmed.len() > 100, "{}", confirmed.len());
    let store = Store::at(folder, settings());
    let stored = assert_stored(&store, &confirmed).await;
    // Not only confirmed pets have their key.
    for (name, id) in &stored {
        let AddedPet { pet, replayed } = store.repository.add(request(name)).await.expect("added");
        assert!(replayed && pet.id().get() == *id, "{name}");
    }
}

/// The shell `sqlite3` does so. It writes the log into the file when it closes it, or ends the use of a log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_another_program_that_uses_the_file_loses_nothing_and_stops_no_start() {
    for statements in
        ["SELECT count(*) FROM pets", "PRAGMA journal_mode = DELETE", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"]
    {
        let (folder, path, confirmed) = killed_file();
        sql::execute(&path, statements);
        assert!(!log_of(&path).exists(), "{statements}");
        let store = Store::at(folder, settings());
        let stored = assert_stored(&store, &confirmed).await;
        store.add("later").await;
        assert_eq!(store.count().await, stored.len() + 1);
    }
}

/// A process that begins before the kill and goes on after it, as a shell that was left open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_program_that_has_the_file_open_during_a_kill_and_a_start_loses_nothing() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut adder = Adder::start(&path);
    adder.read(50);
    let mut other = sql::connect(&path);
    other.batch_execute("SELECT count(*) FROM pets").expect("read");
    adder.read(100);
    let confirmed = adder.kill();
    let store = Store::at(folder, settings());
    assert_stored(&store, &confirmed).await;
    other.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)").expect("written to the file");
    store.add("later").await;
    drop(other);
    let store = Store::at(store.close().await, settings());
    let stored = assert_stored(&store, &confirmed).await;
    assert!(stored.contains_key("later"));
}
