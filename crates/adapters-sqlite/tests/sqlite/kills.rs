//! A process that is killed at any moment.

use std::{
    collections::BTreeMap,
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdout, Stdio},
};

use animal_store_app::ports::AddedPet;

use crate::{child, prelude::*};

const ROUND: &str = "ANIMAL_STORE_TEST_ROUND";

/// Adds pets and prints each confirmed one. Processes of the same round use the same keys. Runs in another process.
pub(crate) async fn add_until_killed(path: &Path) {
    let round = env::var_os(ROUND).expect("a number");
    let round = round.to_str().expect("UTF-8");
    let store = Store::on(path);
    let tasks = (0..16).map(|task| {
        let repository = Arc::clone(&store.repository);
        let task = format!("{round}-{task}");
        async move {
            for number in 0.. {
                let name = format!("{task}-{number}");
                let added = repository.add(request(&name)).await.expect("added");
                let id = added.pet.id().get();
                writeln!(io::stdout(), "confirmed {name} {id}").expect("written");
            }
        }
    });
    join_tasks(tasks).await;
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
        if let Some(confirmed) = line.strip_prefix("confirmed ") {
            let (name, id) = confirmed.split_once(' ').expect("a name and an id");
            let id = id.parse().expect("an id");
            self.confirmed.insert(name.to_owned(), id);
        }
        true
    }
}

/// Returns a file of a process that was killed, with its log, and the confirmed pets.
pub(crate) fn killed_file() -> (TempDir, PathBuf, BTreeMap<String, i64>) {
    let (folder, path) = new_path();
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
    let mut stored = BTreeMap::new();
    for pet in store.list().await {
        let name = pet.new_pet().name().as_str().to_owned();
        let other = stored.insert(name, pet.id().get());
        assert_eq!(other, None, "one pet per key");
    }
    for (name, id) in confirmed {
        assert_eq!(stored.get(name), Some(id), "{name}");
    }
    stored
}

#[tokio::test]
async fn nothing_confirmed_is_lost_and_each_key_has_one_pet() {
    let (folder, path) = new_path();
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
    let store = Store::at(folder);
    let stored = assert_stored(&store, &confirmed).await;
    // Not only confirmed pets have their key.
    for (name, id) in &stored {
        let AddedPet { pet, replayed } = store.repository.add(request(name)).await.expect("added");
        assert!(replayed && pet.id().get() == *id, "{name}");
    }
}

/// The shell `sqlite3` does so. It writes the log into the file when it closes it, or ends the use of a log.
#[tokio::test]
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
        let store = Store::at(folder);
        let stored = assert_stored(&store, &confirmed).await;
        store.add("later").await;
        assert_eq!(store.count().await, stored.len() + 1);
    }
}
