//! Folders with files of some users, in which the program runs as one of them.

use std::{
    fs::Permissions,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
};

use crate::prelude::*;

/// A folder whose way belongs to root.
pub(super) struct Folder(pub(super) TempDir);

impl Folder {
    pub(super) fn new(owner: u32, mode: u32) -> Self {
        let folder = Self(new_folder());
        give(folder.0.path(), owner, owner, mode);
        folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn file(&self, name: &str, text: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        give(&path, owner, owner, mode);
        path
    }

    /// The program in this folder, as a user with this group beside his own.
    pub(super) fn program(&self, user: u32, group: u32, line: &str) -> Program {
        let script = format!("umask 077; exec {} \"$@\"", become_user(user, group));
        let program = Program::in_folder(self.0.path());
        program.args(line).run_by_shell(&script)
    }

    pub(super) fn run(&self, user: u32, line: &str) -> Exited {
        self.program(user, user, line).run()
    }

    /// Creates a store with an API key, and gives it this mode.
    pub(super) fn store(&self, user: u32, group: u32, mode: u32) -> PathBuf {
        let create = "keys create --create --label shop";
        self.program(user, group, create).succeed();
        let path = self.path("animal-store.db");
        give(&path, user, group, mode);
        path
    }
}

pub(super) fn become_user(user: u32, group: u32) -> String {
    format!("setpriv --reuid {user} --regid {user} --groups {user},{group}")
}

pub(super) fn give(path: &Path, user: u32, group: u32, mode: u32) {
    chown(path, Some(user), Some(group)).expect("root may");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("root may");
}

#[track_caller]
pub(super) fn owner(path: &Path) -> u32 {
    path.metadata().expect("a file").uid()
}
