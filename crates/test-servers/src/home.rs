use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::{User, geteuid};
use tempfile::TempDir;

/// A temporary folder, owned by the user that a server runs as.
pub(crate) struct Home {
    directory: TempDir,
    /// The user of the server, if it is not that of the test.
    user: Option<User>,
}

impl Home {
    /// Creates a folder of the user that runs the test.
    pub(crate) fn for_this_user() -> Self {
        Self {
            directory: TempDir::new().expect("a folder"),
            user: None,
        }
    }

    /// Creates a folder of the user that runs the test, or of `postgres` if that is root: PostgreSQL and PgBouncer
    /// refuse to run as root.
    pub(crate) fn new() -> Self {
        let mut home = Self::for_this_user();
        if geteuid().is_root() {
            home.user = User::from_name("postgres").expect("a list of users");
            assert!(home.user.is_some(), "the package of PostgreSQL creates it");
            home.hand_over(home.path());
        }
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The id of the owner.
    pub(crate) fn owner(&self) -> u32 {
        let user = self.user.as_ref();
        user.map_or_else(geteuid, |user| user.uid).as_raw()
    }

    /// Writes a file that the server can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Makes a file readable by the server only: PostgreSQL refuses a private key that others can read.
    pub(crate) fn make_private(&self, file: &Path) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("an own file");
        self.hand_over(file);
    }

    /// Creates a command that runs a program in this folder, as the owner.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.path());
        if let Some(user) = &self.user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command
    }

    fn hand_over(&self, path: &Path) {
        if let Some(user) = &self.user {
            chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root may");
        }
    }
}
