//! Users of the machine, in messages about files.

use std::{os::unix::fs::MetadataExt, path::Path};

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
    if ["root", owner].contains(&user) {
        command.to_owned()
    } else {
        format!("as {owner}: {command}")
    }
}

/// Returns what lets this user, or another one, write a file and its folder.
pub(crate) fn way_to_write(path: &Path) -> String {
    way_of(&this_user(), &owner_of(path))
}

fn way_of(user: &str, owner: &str) -> String {
    match owner {
        _ if owner == user => {
            format!("they belong to {user}, who runs this process: check their modes and the disk")
        }
        // The service should not run as root.
        "root" => format!(
            "they belong to root, and {user} runs this process: as root, make {user} the owner of the file and let it \
             write to the folder, or change storage.sqlite.path"
        ),
        _ => format!("they belong to {owner}, and {user} runs this process: run it as {owner}"),
    }
}

/// Returns the name of the owner of a file, or of the nearest folder of its path that can be examined.
fn owner_of(path: &Path) -> String {
    let metadata = path.ancestors().find_map(|path| path.metadata().ok());
    metadata.map_or_else(this_user, |metadata| name(Uid::from_raw(metadata.uid())))
}

/// Returns the name of a user, or its number if it has none.
fn name(user: Uid) -> String {
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

    #[test]
    fn a_user_who_may_not_write_is_told_who_may_and_never_to_become_root() {
        assert!(
            way_of("store", "shop")
                .ends_with("belong to shop, and store runs this process: run it as shop")
        );
        assert!(way_of("store", "root").contains("as root, make store the owner of the file"));
        assert!(way_of("store", "store").ends_with("check their modes and the disk"));
    }
}
