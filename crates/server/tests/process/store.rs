//! Stores that outlive the programs that use them.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use animal_store_test_servers::{PgDatabase, wait_until};
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    pets::{list_all, pages},
    program::{Exited, LONG_TIMEOUT, Program, TOKEN},
};

/// A storage of pets, empty at first.
pub(crate) enum Store {
    Sqlite(TempDir),
    Postgres(PgDatabase),
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().expect("a folder"))
    }

    #[track_caller]
    pub(crate) fn postgres() -> Self {
        let store = Self::Postgres(PgDatabase::new());
        // It logs that it changes the schema.
        store.succeed(&["migrate"]);
        store
    }

    /// An empty store of each kind.
    #[track_caller]
    pub(crate) fn each() -> [Self; 2] {
        [Self::sqlite(), Self::postgres()]
    }

    /// Path of the SQLite file.
    fn path(folder: &TempDir) -> String {
        folder.path().join("animal-store.db").to_str().expect("UTF-8").to_owned()
    }

    /// A program over the store, with the API key [`TOKEN`].
    pub(crate) fn program(&self) -> Program {
        match self {
            Self::Sqlite(folder) => Program::with_key()
                .env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite")
                .env("ANIMAL_STORE_STORAGE__SQLITE__PATH", &Self::path(folder)),
            Self::Postgres(database) => Program::with_postgres(database.url()),
        }
    }

    /// A configuration file of the store, with API keys as these lines of TOML say.
    pub(crate) fn config(&self, keys: &str) -> String {
        let storage = match self {
            Self::Sqlite(folder) => format!("backend = \"sqlite\"\nsqlite.path = \"{}\"", Self::path(folder)),
            Self::Postgres(database) => format!(
                "backend = \"postgres\"\npostgres.url = \"{}\"\npostgres.timeout = \"{LONG_TIMEOUT}\"",
                database.url()
            ),
        };
        format!("[storage]\n{storage}\n[keys]\n{keys}\n")
    }

    /// The folder of the SQLite file.
    #[track_caller]
    pub(crate) fn folder(&self) -> &Path {
        let Self::Sqlite(folder) = self else { panic!("no SQLite") };
        folder.path()
    }

    /// Whether the SQLite file exists.
    pub(crate) fn has_file(&self) -> bool {
        matches!(self, Self::Sqlite(folder) if Path::new(&Self::path(folder)).exists())
    }

    /// Executes SQL in the store.
    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                let mut connection = SqliteConnection::establish(&Self::path(folder)).expect("a connection");
                connection.batch_execute(sql).expect("it is executed");
            }
            Self::Postgres(database) => drop(database.sql(sql)),
        }
    }

    /// Runs a command over the store.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Exited {
        self.program().args(args).run()
    }

    /// Runs a command that succeeds. Returns its standard output.
    #[track_caller]
    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let exited = self.run(args);
        assert_eq!(exited.code, Some(0), "{exited:?}");
        lines(&exited.stdout)
    }

    /// Imports the text of a file under a name of its own, and asserts that each line was imported.
    #[track_caller]
    pub(crate) fn import(&self, text: &str) {
        static IMPORTS: AtomicUsize = AtomicUsize::new(0);
        let name = IMPORTS.fetch_add(1, Ordering::Relaxed).to_string();
        let exited = self.program().args(&["pets", "import", "-", "--create", "--name", &name]).stdin(text).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
    }

    /// The bodies of all pages, as a client that follows the links gets them.
    #[track_caller]
    pub(crate) fn pages(&self) -> Vec<String> {
        pages(self.program().start().address(), TOKEN)
    }

    /// The names of all pets, sorted.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        sorted_names(&list_all(self.program().start().address(), TOKEN))
    }

    /// Waits until the storage has a pet, without a server.
    #[track_caller]
    pub(crate) fn wait_for_pet(&self) {
        wait_until(|| !self.run(&["pets", "export"]).stdout.is_empty());
    }
}

fn sorted_names(pets: &[Value]) -> Vec<String> {
    let mut names: Vec<_> = pets.iter().map(|pet| pet["name"].as_str().expect("a name").to_owned()).collect();
    names.sort_unstable();
    names
}

/// The names in a file of pets, sorted.
pub(crate) fn names_of(file: &str) -> Vec<String> {
    sorted_names(&file.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<_>>())
}

/// Joins lines of output, each with its line end.
fn lines(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Waits until a moment at which a process is to be interrupted.
#[expect(clippy::disallowed_methods, reason = "the moment is arbitrary: there is no event to wait for")]
pub(crate) fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// Names that a careless format would change.
const ODD_NAMES: &[&str] = &[
    "Rex",
    "a,b;c",
    "say \"sit\"",
    "\"",
    " spaces ",
    "it's",
    "back\\slash \\n",
    "Zoë",
    "名前",
    "🐕‍🦺",
    "=1+1",
    "#end pets=1",
    "null",
    "{\"end\":{}}",
    "\u{2028}line\u{feff}",
    "\\N",
    "<&>",
];

/// Lines of NDJSON, made elsewhere: pets with odd names and all statuses, and with ids, which an import ignores.
pub(crate) fn odd_pets(count: usize) -> String {
    let mut id = 0;
    let lines = (0..count).map(|number| {
        id += 1 + number % 3 * (number % 7);
        let name = match number % 20 {
            19 => "ü".repeat(255),
            index => ODD_NAMES.get(index).map_or_else(|| format!("pet {number}"), |name| format!("{name}{number}")),
        };
        let mut pet =
            json!({ "id": id, "name": name, "categoryId": i64::try_from(number).expect("a small number") - 500 });
        let status = [None, Some("available"), Some("pending"), Some("sold")][number % 4];
        if let Some(status) = status {
            pet["status"] = status.into();
        }
        format!("{pet}\n")
    });
    lines.collect()
}
