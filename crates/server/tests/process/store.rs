//! Stores that outlive the programs that use them.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use animal_store_test_servers::PgDatabase;
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use tempfile::TempDir;

use crate::{
    pets::pages,
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
        folder
            .path()
            .join("animal-store.db")
            .to_str()
            .expect("UTF-8")
            .to_owned()
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

    /// A program over the store with API keys of its own.
    pub(crate) fn with_own_keys(&self) -> Program {
        let backend = if let Self::Sqlite(_) = self {
            "sqlite"
        } else {
            "postgres"
        };
        self.program().env("ANIMAL_STORE_KEYS__BACKEND", backend)
    }

    /// A configuration file of the store, with API keys as these lines of TOML say.
    pub(crate) fn config(&self, keys: &str) -> String {
        let storage = match self {
            Self::Sqlite(folder) => format!(
                "backend = \"sqlite\"\nsqlite.path = \"{}\"",
                Self::path(folder)
            ),
            Self::Postgres(database) => format!(
                "backend = \"postgres\"\npostgres.url = \"{}\"\npostgres.timeout = \"{LONG_TIMEOUT}\"",
                database.url()
            ),
        };
        format!("[storage]\n{storage}\n[keys]\n{keys}\n")
    }

    /// Whether the SQLite file exists.
    pub(crate) fn has_file(&self) -> bool {
        matches!(self, Self::Sqlite(folder) if Path::new(&Self::path(folder)).exists())
    }

    /// Executes SQL in the store.
    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(_) => self
                .connection()
                .batch_execute(sql)
                .expect("it is executed"),
            Self::Postgres(database) => drop(database.sql(sql)),
        }
    }

    /// A connection to the SQLite file.
    #[track_caller]
    pub(crate) fn connection(&self) -> SqliteConnection {
        let Self::Sqlite(folder) = self else {
            panic!("not a file")
        };
        SqliteConnection::establish(&Self::path(folder)).expect("a connection")
    }

    /// Runs a command over the store.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Exited {
        self.program().args(args).run()
    }

    /// Runs a command that succeeds. Returns the lines of its standard output.
    #[track_caller]
    pub(crate) fn succeed(&self, args: &[&str]) -> Vec<String> {
        let exited = self.run(args);
        assert_eq!(exited.code, Some(0), "{exited:?}");
        exited.stdout
    }

    /// Imports the text of a file under a name of its own, and asserts that each line was imported.
    #[track_caller]
    pub(crate) fn import(&self, text: &str) {
        static IMPORTS: AtomicUsize = AtomicUsize::new(0);
        let name = IMPORTS.fetch_add(1, Ordering::Relaxed).to_string();
        let exited = self
            .program()
            .args(&["pets", "import", "-", "--create", "--name", &name])
            .stdin(text)
            .run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
    }

    /// The bodies of all pages, as a client that follows the links gets them.
    #[track_caller]
    pub(crate) fn pages(&self) -> Vec<String> {
        pages(self.program().start().address(), TOKEN)
    }

    /// The lines of an export, sorted, without ids.
    #[track_caller]
    pub(crate) fn pets(&self) -> Vec<String> {
        without_ids(&self.succeed(&["pets", "export"]))
    }
}

/// Sorts lines of pets, and removes their ids.
pub(crate) fn without_ids(lines: &[String]) -> Vec<String> {
    let without_id = |line: &String| line.split_once(',').expect("members").1.to_owned();
    let mut lines: Vec<_> = lines.iter().map(without_id).collect();
    lines.sort_unstable();
    lines
}

/// Names that a careless format would change.
const ODD_NAMES: [&str; 8] = [
    "a,b;c",
    "say \"sit\"",
    " spaces ",
    "back\\slash \\n",
    "🐕‍🦺",
    "#end pets=1",
    "\u{2028}line\u{feff}",
    "null",
];

/// Lines of NDJSON, made elsewhere: pets with odd names and all statuses, and with ids, which an import ignores.
pub(crate) fn odd_pets(count: usize) -> Vec<String> {
    let line = |number: usize| {
        let name = ODD_NAMES
            .get(number % 20)
            .map_or_else(|| format!("pet {number}"), |name| format!("{name}{number}"));
        let status = [
            "",
            r#","status":"available""#,
            r#","status":"pending""#,
            r#","status":"sold""#,
        ][number % 4];
        let name = serde_json::Value::from(name);
        format!(
            r#"{{"id":{},"name":{name},"categoryId":{}{status}}}"#,
            number * 3 + 1,
            number % 1000 + 1
        )
    };
    (0..count).map(line).collect()
}
