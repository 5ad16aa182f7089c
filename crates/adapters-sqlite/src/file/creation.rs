use std::{
    fs::{OpenOptions, Permissions},
    io::ErrorKind,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use crate::SqliteFileError;

/// The owner may read and write.
const MODE: u32 = 0o600;

/// Creates an empty file with mode 0600, which SQLite also gives to the files beside it.
///
/// An existing file is not opened: a process that closes a file loses all its locks of it, also those of SQLite.
pub(super) fn create_if_missing(path: &Path) -> Result<(), SqliteFileError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    // The umask may have removed permissions of the owner.
    let created = file.and_then(|file| file.set_permissions(Permissions::from_mode(MODE)));
    let Err(error) = created else { return Ok(()) };
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::AlreadyExists => Ok(()),
        ErrorKind::NotFound => Err(SqliteFileError::NoFolder { path }),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Err(SqliteFileError::NotWritable { path, reason })
        }
        ErrorKind::StorageFull => Err(SqliteFileError::Full { path }),
        _ => Err(SqliteFileError::Unavailable { path, reason }),
    }
}
