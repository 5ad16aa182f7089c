use std::path::Path;

use animal_store_app::SchemaComparison;
use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection, prelude::*};
use diesel_migrations::MigrationHarness;

use super::{APPLICATION_ID, named_migration, tables::__diesel_schema_migrations as records};
use crate::{SqliteFileError, scalar::number};

/// Compares the migrations of this program with the recorded ones.
pub(crate) fn compare(connection: &mut SqliteConnection) -> QueryResult<SchemaComparison> {
    const HAS_RECORDS: &str = "SELECT count(*) FROM sqlite_schema WHERE name = '__diesel_schema_migrations'";
    let recorded: Vec<String> = match number(connection, HAS_RECORDS)? {
        0 => Vec::new(),
        _ => records::table.select(records::version).order(records::version).load(connection)?,
    };
    Ok(SchemaComparison::from_names(named_migration::names(), &recorded))
}

/// Runs the pending migrations, one process at a time.
pub(crate) fn migrate(path: &Path, connection: &mut SqliteConnection) -> Result<(), SqliteFileError> {
    let failed = |error: diesel::result::Error| SqliteFileError::from_message(path, &error.to_string());
    let mut comparison = compare(connection).map_err(failed)?;
    if !comparison.pending.is_empty() && comparison.contracted.is_empty() {
        connection.immediate_transaction(run_pending).map_err(|error| migration_error(path, &error.to_string()))?;
        comparison = compare(connection).map_err(failed)?;
    }
    if !comparison.contracted.is_empty() {
        return Err(SqliteFileError::Newer { path: path.to_owned(), migrations: comparison.contracted });
    }
    if !comparison.newer.is_empty() {
        let migrations = comparison.newer.join(", ");
        tracing::warn!(file = %path.display(), migrations, "a newer program has expanded the schema");
    }
    Ok(())
}

/// A full disk, for example, is not a failure of the migration itself.
fn migration_error(path: &Path, message: &str) -> SqliteFileError {
    match SqliteFileError::from_message(path, message) {
        SqliteFileError::Unavailable { path, reason } => SqliteFileError::Migration { path, reason },
        error => error,
    }
}

/// Compares again, because another process may have run them meanwhile.
fn run_pending(connection: &mut SqliteConnection) -> diesel::migration::Result<()> {
    let pending = compare(connection)?.pending;
    if pending.is_empty() {
        return Ok(());
    }
    connection.batch_execute(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
    connection.applied_migrations()?;
    for migration in named_migration::all().iter().filter(|migration| pending.contains(&migration.name)) {
        connection.run_migration(migration)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::{SqliteFile, problems::Problems};

    #[test]
    fn only_an_expansion_by_a_newer_program_is_logged() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pets.db");
        let open = || SqliteFile::open(&path, Duration::from_secs(20)).unwrap();
        let (problems, _guard) = Problems::start();
        let newer = "INSERT INTO __diesel_schema_migrations (version) VALUES ('9998_expand_x')";
        open().connect().unwrap().batch_execute(newer).unwrap();
        assert_eq!(problems.count(), 0);
        open();
        assert_eq!(problems.count(), 1);
    }

    #[test]
    fn a_failure_around_a_migration_is_not_one_of_the_migration() {
        let error = |message| migration_error(Path::new("pets.db"), message);
        assert!(matches!(error("database or disk is full"), SqliteFileError::Full { .. }));
        assert!(matches!(error("database is locked"), SqliteFileError::Locked { .. }));
        let error = error("near \"TABEL\": syntax error");
        assert!(matches!(error, SqliteFileError::Migration { .. }), "{error}");
        assert!(error.to_string().contains("animal-store doctor"), "{error}");
    }
}
