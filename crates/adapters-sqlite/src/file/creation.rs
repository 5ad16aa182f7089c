use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, absolute},
};

use super::identity::folder_of;
use crate::SqliteFileError;

/// The owner may read and write.
const MODE: u32 = 0o600;

/// Creates an empty file with mode 0600, which SQLite also gives to the files beside it.
pub(crate) fn create(path: &Path) -> Result<(), SqliteFileError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    // The umask may have removed permissions of the owner.
    let created = file.and_then(|file| file.set_permissions(Permissions::from_mode(MODE)));
    match created.and_then(|()| File::open(folder_of(&absolute(path)?))?.sync_all()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(creation_error(path, &error)),
        // Another process has just created it, or it is a symbolic link to a missing file.
        _ => Ok(()),
    }
}

fn creation_error(path: &Path, error: &io::Error) -> SqliteFileError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => SqliteFileError::NotWritable { path, reason },
        ErrorKind::StorageFull => SqliteFileError::Full { path },
        _ => SqliteFileError::Unavailable { path, reason },
    }
}
