use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// A temporary folder, owned by the user that a server runs as.
pub(crate) struct Home {
    directory: TempDir,
    owner: u32,
    /// The user and group of the server, if they are not those of the test.
    become_user: Option<(u32, u32)>,
}

impl Home {
    /// Creates a folder of the user that runs the test.
    pub(crate) fn for_this_user() -> Self {
        let directory = TempDir::new().expect("a folder");
        let owner = directory
            .path()
            .metadata()
            .expect("the folder exists")
            .uid();
        Self {
            directory,
            owner,
            become_user: None,
        }
    }

    /// Creates a folder of the user that runs the test, or of `postgres` if that is root: PostgreSQL and PgBouncer
    /// refuse to run as root.
    pub(crate) fn new() -> Self {
        let mut home = Self::for_this_user();
        if home.owner == 0 {
            home.owner = id_of_postgres("-u");
            home.become_user = Some((home.owner, id_of_postgres("-g")));
            home.hand_over(home.path());
        }
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The id of the owner.
    pub(crate) const fn owner(&self) -> u32 {
        self.owner
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
        if let Some((user, group)) = self.become_user {
            command.uid(user).gid(group);
        }
        command
    }

    fn hand_over(&self, path: &Path) {
        if let Some((user, group)) = self.become_user {
            chown(path, Some(user), Some(group)).expect("root may");
        }
    }
}

fn id_of_postgres(which: &str) -> u32 {
    let output = Command::new("id")
        .args([which, "postgres"])
        .output()
        .expect("id runs");
    let id = String::from_utf8_lossy(&output.stdout).trim().parse();
    id.expect("the user postgres, which the package of PostgreSQL creates")
}
