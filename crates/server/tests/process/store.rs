//! Stores that outlive the programs that use them.

use std::sync::atomic::{AtomicUsize, Ordering};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};

use crate::prelude::*;

/// A storage of pets, empty at first.
pub(crate) enum Store {
    Sqlite(TempDir),
    Postgres(PgDatabase),
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(new_folder())
    }

    #[track_caller]
    pub(crate) fn postgres() -> Self {
        let store = Self::Postgres(PgDatabase::new());
        // It logs that it changes the schema.
        store.succeed("migrate");
        store
    }

    /// An empty store of each kind.
    #[track_caller]
    pub(crate) fn each() -> [Self; 2] {
        [Self::sqlite(), Self::postgres()]
    }

    /// The folder of the SQLite file.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::Sqlite(folder) => folder.path(),
            Self::Postgres(_) => panic!("not a file"),
        }
    }

    /// The SQLite file, which is the default one in its folder.
    pub(crate) fn path(&self) -> String {
        let path = self.folder().join("animal-store.db");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn backend(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Keys of the configuration, with their values.
    fn settings(&self) -> [(&'static str, String); 3] {
        let place = match self {
            Self::Sqlite(_) => ("storage.sqlite.path", self.path()),
            Self::Postgres(database) => ("storage.postgres.url", database.url().to_owned()),
        };
        let backend = ("storage.backend", self.backend().to_owned());
        let timeout = ("storage.postgres.timeout", LONG_TIMEOUT.to_owned());
        [place, backend, timeout]
    }

    /// A program over the store, with the API key [`TOKEN`](crate::program::TOKEN).
    pub(crate) fn program(&self) -> Program {
        let mut program = Program::with_key();
        for (key, value) in self.settings() {
            program = program.set(key, &value);
        }
        program
    }

    /// A program over the SQLite file without any configuration.
    pub(crate) fn unconfigured(&self) -> Program {
        Program::in_folder(self.folder())
    }

    /// A program over the store with API keys of its own.
    pub(crate) fn with_own_keys(&self) -> Program {
        self.program().set("keys.backend", self.backend())
    }

    /// A configuration file of the store, with API keys as these lines of TOML say.
    pub(crate) fn config(&self, keys: &str) -> String {
        let settings = self.settings();
        let lines = settings.map(|(key, value)| format!("{key} = \"{value}\"\n"));
        format!("{}[keys]\n{keys}\n", lines.concat())
    }

    /// Executes SQL in the store.
    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(_) => self.connection().batch_execute(sql).expect("executed"),
            Self::Postgres(database) => drop(database.sql(sql)),
        }
    }

    /// A connection to the SQLite file, which waits for the locks of a program.
    #[track_caller]
    pub(crate) fn connection(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::establish(&self.path()).expect("a connection");
        let wait = connection.batch_execute("PRAGMA busy_timeout = 60000");
        wait.expect("set");
        connection
    }

    /// Runs a command over the store.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> Exited {
        self.program().args(line).run()
    }

    /// Runs a command that succeeds. Returns the lines of its standard output.
    #[track_caller]
    pub(crate) fn succeed(&self, line: &str) -> Vec<String> {
        self.program().args(line).succeed().stdout
    }

    /// Runs `keys` over the API keys of the store. Creates the store if it does not exist.
    #[track_caller]
    pub(crate) fn keys(&self, line: &str) -> Exited {
        self.with_own_keys().args("keys").args(line).run()
    }

    /// The JSON of the API keys of the store.
    #[track_caller]
    pub(crate) fn list_keys(&self) -> Vec<String> {
        let listed = self.keys("list --json");
        listed.assert_success();
        listed.stdout
    }

    /// Creates an API key of the store.
    #[track_caller]
    pub(crate) fn create_key(&self) -> NewKey {
        NewKey::printed(&self.keys("create --create --label shop"))
    }

    /// Makes a backup with the API keys, as a store.
    #[track_caller]
    pub(crate) fn backup(&self) -> Self {
        let backup = Self::sqlite();
        let command = self.with_own_keys().args("backup");
        command.arg(backup.path()).succeed();
        backup
    }

    /// Imports lines under a name of its own, and asserts that each of them was imported.
    #[track_caller]
    pub(crate) fn import(&self, lines: &[String]) {
        static IMPORTS: AtomicUsize = AtomicUsize::new(0);
        let name = IMPORTS.fetch_add(1, Ordering::Relaxed);
        let import = format!("pets import - --create --name {name}");
        let program = self.program().args(&import);
        program.stdin(&lines.join("\n")).succeed();
    }

    /// The bodies of all pages, as a client that follows the links gets them.
    #[track_caller]
    pub(crate) fn pages(&self) -> Vec<String> {
        pages(self.program().start().address())
    }

    /// The lines of an export, sorted, without ids.
    #[track_caller]
    pub(crate) fn pets(&self) -> Vec<String> {
        without_ids(&self.succeed("pets export"))
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
    let statuses = [
        "",
        r#","status":"available""#,
        r#","status":"pending""#,
        r#","status":"sold""#,
    ];
    let line = |number: usize| {
        let id = number * 3 + 1;
        let name = format!("{}{number}", ODD_NAMES[number / 4 % 8]);
        let name = serde_json::Value::from(name);
        let status = statuses[number % 4];
        format!(r#"{{"id":{id},"name":{name},"categoryId":{number}{status}}}"#)
    };
    (0..count).map(line).collect()
}
