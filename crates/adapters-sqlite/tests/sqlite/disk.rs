//! Changes of files by an operator, which succeed.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use tempfile::TempDir;

pub(crate) fn new_folder() -> TempDir {
    TempDir::new().expect("a folder")
}

#[track_caller]
pub(crate) fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(path).expect("read")
}

#[track_caller]
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    fs::write(path, content).expect("written");
}

#[track_caller]
pub(crate) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::rename(from, to).expect("renamed");
}

#[track_caller]
pub(crate) fn remove(path: impl AsRef<Path>) {
    fs::remove_file(path).expect("removed");
}

#[track_caller]
pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
}
