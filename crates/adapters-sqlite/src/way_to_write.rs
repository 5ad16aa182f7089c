//! What a user who cannot write the file can do.

use std::path::{Path, absolute};

use animal_store_adapter_kit::{owner_of, this_user};

/// Returns what lets this user, or another one, write a file and its folder.
pub(crate) fn way_to_write(path: &Path) -> String {
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(&path);
    way_of(&this_user(), &owner_of(&path), &owner_of(folder))
}

fn way_of(user: &str, owner: &str, owner_of_folder: &str) -> String {
    match owner {
        _ if owner == user && owner_of_folder != user => {
            format!(
                "the file belongs to {user}, who runs this process, and its folder to {owner_of_folder}: let {user} \
                 write to the folder, or change storage.sqlite.path"
            )
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_may_not_write_is_told_who_may_and_never_to_become_root() {
        for (owner, owner_of_folder, text) in [
            (
                "shop",
                "shop",
                "belong to shop, and store runs this process: run it as shop",
            ),
            ("root", "root", "as root, make store the owner of the file"),
            ("store", "store", "check their modes and the disk"),
            (
                "store",
                "root",
                "and its folder to root: let store write to the folder",
            ),
        ] {
            let way = way_of("store", owner, owner_of_folder);
            assert!(way.contains(text), "{way}");
        }
    }
}
