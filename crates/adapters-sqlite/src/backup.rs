//! A backup: a new file that gets its name when it is complete, and that is a store of its own.
//!
//! API keys that were revoked after a backup are valid in it. So it has its time, in a table that the first start of a
//! service on it reports and removes.

use std::{
    fs::{File, Permissions, set_permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf, absolute},
    time::{Duration, SystemTime},
};

use animal_store_app::milliseconds;
use diesel::{
    QueryDsl, QueryResult, RunQueryDsl, SqliteConnection, connection::SimpleConnection, sql_query,
    sql_types::Text,
};
use tempfile::{Builder, TempDir, TempPath};
use tokio::task::spawn_blocking;

use crate::{
    FileUse, SqliteFile, SqliteFileError,
    error::Problem,
    file::{self, Disk},
    pet_row::pets,
    schema::set_store_id,
    values::{has_table, number, text},
};

/// The size of a file with its log, which a backup does not exceed.
const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";

/// A backup that is not complete. It is in a temporary folder beside its target, which is removed if this is dropped.
pub struct NewBackup {
    started: SystemTime,
    target: PathBuf,
    folder: TempDir,
}

/// The file that is backed up.
struct Source {
    connection: SqliteConnection,
    bytes: u64,
    pets: i64,
}

impl NewBackup {
    /// Creates the temporary folder.
    ///
    /// # Errors
    /// If the target or its log exists, or if the folder of the target cannot be written.
    pub fn create(target: &Path) -> Result<Self, SqliteFileError> {
        let create = || {
            if target.symlink_metadata().is_ok() || file::log_path(target).exists() {
                return Err(Problem::Exists);
            }
            let target = absolute(target)?;
            let prefix = format!(
                ".{}.partial-",
                target.file_name().unwrap_or_default().to_string_lossy()
            );
            let private = Permissions::from_mode(0o700);
            let folder = Builder::new()
                .prefix(&prefix)
                .permissions(private.clone())
                .tempdir_in(target.parent().ok_or(Problem::IsFolder)?)?;
            // The umask may have removed permissions of the owner.
            set_permissions(folder.path(), private)?;
            Ok(Self {
                started: SystemTime::now(),
                target,
                folder,
            })
        };
        create().map_err(|problem| problem.at(target))
    }

    /// The file before it is complete. It does not exist yet.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// Writes the committed content of a file, API keys included, and returns its number of pets. Creates go on
    /// meanwhile.
    ///
    /// # Errors
    /// If the file cannot be read, the backup cannot be written, or it has fewer pets than the file had.
    pub async fn vacuum_from(&self, file: SqliteFile) -> Result<i64, SqliteFileError> {
        let path = self.path();
        let target = self.target.clone();
        let write = move || {
            let source_path = file.path();
            let source = Source::open(&file).map_err(|problem| problem.at(source_path))?;
            source.vacuum_into(&path).map_err(|problem| match problem {
                Problem::Corrupt(_) => problem.at(source_path),
                _ => problem.at(&target),
            })
        };
        let written = spawn_blocking(write).await;
        written
            .unwrap_or_else(|panic| Err(Problem::Unavailable(panic.to_string()).at(&self.target)))
    }

    /// Writes the backup to the disk, as one file, and gives it its name. No connection to it may be open.
    ///
    /// # Errors
    /// If it cannot be written, or if a file with its name exists by now.
    pub fn finish(self) -> Result<(), SqliteFileError> {
        let write = || {
            let path = self.path();
            let mut connection = file::connect(&path, FileUse::Write, Duration::ZERO)?;
            // A log would be a second file.
            connection.batch_execute("PRAGMA journal_mode = DELETE")?;
            set_store_id(&mut connection)?;
            // The backup of a backup has the earlier time as well.
            let mark = format!(
                "CREATE TABLE IF NOT EXISTS backup_times (milliseconds INTEGER); INSERT INTO backup_times VALUES ({})",
                milliseconds(self.started)
            );
            connection.batch_execute(&mark)?;
            drop(connection);
            File::open(&path)?.sync_all()?;
            let named = TempPath::try_from_path(path)?.persist_noclobber(&self.target);
            named.map_err(io::Error::from)?;
            Ok(File::open(self.target.parent().unwrap_or(Path::new("/")))?.sync_all()?)
        };
        write().map_err(|problem: Problem| problem.at(&self.target))
    }
}

impl Source {
    fn open(file: &SqliteFile) -> Result<Self, Problem> {
        let mut connection = file.connect()?;
        let bytes = number(&mut connection, SIZE)?.unsigned_abs();
        let pets = count(&mut connection)?;
        Ok(Self {
            connection,
            bytes,
            pets,
        })
    }

    /// Writes a new file, and returns its number of pets.
    fn vacuum_into(mut self, path: &Path) -> Result<i64, Problem> {
        file::create(path)?;
        let name = path
            .to_str()
            .ok_or_else(|| Problem::Unavailable("the path is not UTF-8".to_owned()))?;
        Disk::check(path, self.bytes)?;
        sql_query("VACUUM INTO ?")
            .bind::<Text, _>(name)
            .execute(&mut self.connection)?;
        let written = count(&mut file::connect(path, FileUse::Write, Duration::ZERO)?)?;
        if written < self.pets {
            return Err(Problem::Corrupt(format!(
                "{written} pets were written, and {} read",
                self.pets
            )));
        }
        Ok(written)
    }
}

/// Returns the time of a backup that no service has used, in UTC.
pub(crate) fn time_of_backup(connection: &mut SqliteConnection) -> QueryResult<Option<String>> {
    const TIME: &str = "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', min(milliseconds) / 1000, 'unixepoch') FROM backup_times";
    if !has_table(connection, "backup_times")? {
        return Ok(None);
    }
    text(connection, TIME).map(Some)
}

fn count(connection: &mut SqliteConnection) -> Result<i64, Problem> {
    Ok(pets::table.count().get_result(connection)?)
}
