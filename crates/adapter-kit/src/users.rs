//! Users of the machine, in messages about files.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, absolute},
};

use nix::unistd::{Uid, User, geteuid};

/// Returns the name of the user of this process.
pub fn this_user() -> String {
    name(geteuid())
}

/// Returns a command that only the owner of a file and root may run. For another user, it begins with the owner's name.
pub fn command_of_owner(path: &Path, command: &str) -> String {
    as_owner(command, &this_user(), &owner_of(path))
}

fn as_owner(command: &str, user: &str, owner: &str) -> String {
    if user == "root" || user == owner {
        command.to_owned()
    } else {
        format!("as {owner}: {command}")
    }
}

/// Returns the name of the owner of a file, or of the nearest folder of its path that can be examined.
pub fn owner_of(path: &Path) -> String {
    let metadata = nearest(path);
    metadata.map_or_else(this_user, |metadata| name(Uid::from_raw(metadata.uid())))
}

fn nearest(path: &Path) -> Option<Metadata> {
    // The folders of a relative path do not include the working directory.
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find_map(|path| path.metadata().ok())
}

/// Returns the name of a user, or its number if it has none.
pub(crate) fn name(user: Uid) -> String {
    User::from_uid(user)
        .ok()
        .flatten()
        .map_or_else(|| user.to_string(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_that_of_the_file_or_of_the_nearest_folder() {
        for path in ["/etc/passwd", "/etc/missing/animal-store.db"] {
            assert_eq!(owner_of(Path::new(path)), "root", "{path}");
        }
        assert_eq!(
            owner_of(tempfile::NamedTempFile::new().unwrap().path()),
            this_user()
        );
        let folder = nearest(Path::new("missing.db")).unwrap();
        assert_eq!(folder.ino(), Path::new(".").metadata().unwrap().ino());
    }

    #[test]
    fn a_command_that_this_user_may_not_run_names_the_one_who_may() {
        for (user, owner, command) in [
            ("store", "store", "chmod"),
            ("root", "store", "chmod"),
            ("store", "root", "as root: chmod"),
        ] {
            assert_eq!(as_owner("chmod", user, owner), command);
        }
    }
}
