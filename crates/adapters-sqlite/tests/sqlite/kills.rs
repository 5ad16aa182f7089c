//! A process that is killed at any moment.

use std::{
    collections::BTreeMap,
    env,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    sync::Arc,
};

use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddedPet, PetRepository},
    test_support::{api_key_id, join_tasks, pet_named},
};
use tempfile::TempDir;

use crate::{
    child, sql,
    store::{Store, log_of, settings},
};

fn request(name: &str) -> AddPet {
    let idempotency_key = Some(IdempotencyKey::new(api_key_id("shop"), name));
    AddPet {
        pet: pet_named(name),
        idempotency_key,
    }
}

const ROUND: &str = "ANIMAL_STORE_TEST_ROUND";

/// Adds pets and prints each confirmed one. Processes of the same round use the same keys.
pub(crate) fn add_until_killed(path: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let round = env::var_os(ROUND)
        .expect("a number")
        .into_string()
        .expect("UTF-8");
    runtime.expect("a runtime").block_on(async {
        let store = Store::on(path, settings());
        join_tasks((0..16).map(|task| {
            let (repository, round) = (Arc::clone(&store.repository), round.clone());
            async move {
                for number in 0.. {
                    let name = format!("{round}-{task}-{number}");
                    let id = repository
                        .add(request(&name))
                        .await
                        .expect("added")
                        .pet
                        .id()
                        .get();
                    writeln!(io::stdout(), "confirmed {name} {id}").expect("written");
                }
            }
        }))
        .await;
    });
}

/// A process that adds pets until it is killed.
struct Adder {
    process: Child,
    output: BufReader<ChildStdout>,
    /// The ids of the confirmed pets, by name.
    confirmed: BTreeMap<String, i64>,
}

impl Adder {
    fn start(path: &Path, round: usize) -> Self {
        let mut command = child::command(&[], "adds", path);
        let mut process = command
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self {
            process,
            output,
            confirmed: BTreeMap::new(),
        }
    }

    /// Reads until this number of pets was confirmed.
    fn read(&mut self, count: usize) {
        while self.confirmed.len() < count {
            assert!(self.read_line(), "the process adds pets");
        }
    }

    /// Kills the process, and returns all confirmed pets.
    fn kill(mut self) -> BTreeMap<String, i64> {
        self.process.kill().expect("killed");
        while self.read_line() {}
        self.process.wait().expect("ended");
        self.confirmed
    }

    /// Returns whether there is another line. The last one may be incomplete.
    fn read_line(&mut self) -> bool {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("UTF-8");
        let Some(line) = line.strip_suffix('\n') else {
            return false;
        };
        if let Some((name, id)) = line
            .strip_prefix("confirmed ")
            .and_then(|line| line.split_once(' '))
        {
            self.confirmed
                .insert(name.to_owned(), id.parse().expect("an id"));
        }
        true
    }
}

/// Returns a file of a process that was killed, with its log, and the confirmed pets.
pub(crate) fn killed_file() -> (TempDir, PathBuf, BTreeMap<String, i64>) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut adder = Adder::start(&path, 0);
    adder.read(100);
    let confirmed = adder.kill();
    assert!(log_of(&path).metadata().expect("a log").len() > 0);
    (folder, path, confirmed)
}

/// Returns the ids of all pets, by name.
pub(crate) async fn assert_stored(
    store: &Store,
    confirmed: &BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    let pets = store
        .repository
        .list(None, None, usize::MAX)
        .await
        .expect("listed");
    let stored: BTreeMap<_, _> = pets
        .iter()
        .map(|pet| (pet.new_pet().name().as_str().to_owned(), pet.id().get()))
        .collect();
    assert_eq!(stored.len(), pets.len(), "one pet per key");
    for (name, id) in confirmed {
        assert_eq!(stored.get(name), Some(id), "{name}");
    }
    stored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_and_each_key_has_one_pet() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut confirmed = BTreeMap::new();
    // Two processes add pets with the same keys. The first ones are killed while they start, the others after a number
    // of confirmed pets.
    for round in 0..8 {
        let mut adders = [(); 2].map(|()| Adder::start(&path, round));
        for adder in &mut adders {
            adder.read(30 * round);
        }
        for (name, id) in adders.into_iter().flat_map(Adder::kill) {
            assert_eq!(*confirmed.entry(name).or_insert(id), id, "one pet per key");
        }
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
    for statements in [
        "SELECT count(*) FROM pets",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "VACUUM",
    ] {
        let (folder, path, confirmed) = killed_file();
        sql::execute(&path, statements);
        assert!(!log_of(&path).exists(), "{statements}");
        let store = Store::at(folder, settings());
        let stored = assert_stored(&store, &confirmed).await;
        store.add("later").await;
        assert_eq!(store.count().await, stored.len() + 1);
    }
}
