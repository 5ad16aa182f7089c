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

/// A temporary folder of the user whom a server runs as.
///
/// That is who runs the test, but `postgres` in place of root: PostgreSQL and PgBouncer refuse to run as root.
pub(crate) struct Home {
    directory: TempDir,
    owner: u32,
    /// The user and group to become.
    become_user: Option<(u32, u32)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let me = directory.path().metadata().expect("it is there").uid();
        let become_user = (me == 0).then(|| (id_of_postgres("-u"), id_of_postgres("-g")));
        let home = Self { directory, owner: become_user.map_or(me, |(user, _)| user), become_user };
        home.hand_over(home.path());
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The id of the user whose it is.
    pub(crate) const fn owner(&self) -> u32 {
        self.owner
    }

    /// Writes a file that the server can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Lets nobody but the server read this file: it refuses a private key that others can read.
    pub(crate) fn make_private(&self, file: &Path) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a file of ours");
        self.hand_over(file);
    }

    /// What runs a program in this folder, as its user.
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
    let output = Command::new("id").args([which, "postgres"]).output().expect("id runs");
    let id = String::from_utf8_lossy(&output.stdout).trim().parse();
    id.expect("the user postgres, as whom root runs PostgreSQL; its package makes it")
}
