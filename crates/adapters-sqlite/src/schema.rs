//! The schema of the file, and its migrations.
//!
//! **Problem.** Several processes may start at the same time on one file, and a process may find a schema that is older
//! or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once, and all of them in one transaction. While
//! they run, foreign keys are not enforced, so that a table can be rebuilt; before the commit they are checked. Diesel
//! records the version of a migration, such as `0001expand`, from which an older program derives whether the migration
//! only expanded the schema, which is harmless, or contracted it.
//!
//! **Proof.** `tests/sqlite/migrations.rs`, and the unit tests below.

use animal_store_adapter_kit::SchemaComparison;
use diesel::{
    connection::SimpleConnection,
    dsl::sql,
    migration::{self, MigrationSource},
    prelude::*,
    sql_types::Text,
    sqlite::Sqlite,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::{
    error::Problem,
    values::{has_table, number},
};

/// Identifies the files of this program: `anst` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x616e_7374;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// Compares the migrations of this program with the recorded ones. Fails if this program does not work with the schema.
pub(crate) fn compare(connection: &mut SqliteConnection) -> Result<SchemaComparison, Problem> {
    let recorded: Vec<String> = if has_table(connection, "__diesel_schema_migrations")? {
        sql::<Text>("SELECT version FROM __diesel_schema_migrations ORDER BY version")
            .load(connection)?
    } else {
        Vec::new()
    };
    let migrations = MigrationSource::<Sqlite>::migrations(&MIGRATIONS)
        .expect("embedded migrations can be read");
    let mut versions: Vec<_> = migrations
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect();
    versions.sort_unstable();
    SchemaComparison::from_versions(versions, &recorded).map_err(Problem::Schema)
}

/// Runs the pending migrations, one process at a time, and returns their versions.
pub(crate) fn migrate(connection: &mut SqliteConnection) -> Result<Vec<String>, Problem> {
    compare(connection)?;
    run(connection, MIGRATIONS).map_err(|error| match Problem::of_message(&error) {
        // A full disk, for example, is not a failure of the migration itself.
        Problem::Unavailable(reason) => Problem::Migration(reason),
        problem => problem,
    })
}

/// An index of all pets is sorted in temporary files: in memory, it would take as much as the pets. SQLite ignores a
/// change of `foreign_keys` within a transaction.
fn run(
    connection: &mut SqliteConnection,
    source: impl MigrationSource<Sqlite>,
) -> migration::Result<Vec<String>> {
    connection.batch_execute("PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE")?;
    let done = connection.immediate_transaction(|connection| {
        connection.batch_execute(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
        if number(connection, "PRAGMA user_version")? == 0 {
            set_store_id(connection)?;
        }
        // Another process may have run some of them meanwhile.
        let done = connection
            .run_pending_migrations(source)?
            .iter()
            .map(ToString::to_string)
            .collect();
        match number(connection, "SELECT count(*) FROM pragma_foreign_key_check")? {
            0 => Ok(done),
            rows => Err(format!("{rows} rows would refer to rows that do not exist").into()),
        }
    });
    // The checkpoint writes the id of the store to the file.
    connection.batch_execute(
        "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA wal_checkpoint",
    )?;
    done
}

/// Gives the store a random id, in its first page.
pub(crate) fn set_store_id(connection: &mut SqliteConnection) -> QueryResult<()> {
    let id = number(connection, "SELECT 1 + abs(random() % 2147483647)")?;
    connection.batch_execute(&format!("PRAGMA user_version = {id}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use diesel_migrations::FileBasedMigrations;
    use tempfile::TempDir;

    use super::*;

    const KEY: &str = "INSERT INTO api_keys VALUES ('key', 'label', 'read', 1);
        INSERT INTO api_key_tokens (digest, api_key_id, last_four, created_at) VALUES (x'00', 'key', 'last', 0);";

    fn database() -> SqliteConnection {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        connection
            .batch_execute("PRAGMA foreign_keys = ON")
            .unwrap();
        run(&mut connection, MIGRATIONS).unwrap();
        connection.batch_execute(KEY).unwrap();
        connection
    }

    /// Runs a migration of another release.
    fn migrate(connection: &mut SqliteConnection, up: &str) -> migration::Result<Vec<String>> {
        let folder = TempDir::new().unwrap();
        let migration = folder.path().join("9999-contract_test");
        fs::create_dir(&migration).unwrap();
        fs::write(migration.join("up.sql"), up).unwrap();
        run(
            connection,
            FileBasedMigrations::from_path(folder.path()).unwrap(),
        )
    }

    #[test]
    fn a_table_that_others_refer_to_can_be_rebuilt() {
        let mut connection = database();
        let rebuild = "CREATE TABLE new (id TEXT NOT NULL PRIMARY KEY, label TEXT NOT NULL, scopes TEXT NOT NULL,
            version INTEGER NOT NULL);
            INSERT INTO new SELECT * FROM api_keys; DROP TABLE api_keys; ALTER TABLE new RENAME TO api_keys;";
        assert_eq!(migrate(&mut connection, rebuild).unwrap(), ["9999contract"]);
        assert_eq!(
            number(&mut connection, "SELECT count(*) FROM api_key_tokens").unwrap(),
            1
        );
        assert_eq!(number(&mut connection, "PRAGMA foreign_keys").unwrap(), 1);
    }

    #[test]
    fn a_migration_that_breaks_a_reference_changes_nothing() {
        let mut connection = database();
        let error = migrate(&mut connection, "DELETE FROM api_keys").unwrap_err();
        assert!(
            error.to_string().starts_with("1 rows would refer"),
            "{error}"
        );
        assert_eq!(
            number(&mut connection, "SELECT count(*) FROM api_keys").unwrap(),
            1
        );
        compare(&mut connection).unwrap();
    }
}
