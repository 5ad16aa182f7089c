//! What a user who cannot write the file can do.

use std::path::Path;

use animal_store_adapter_kit::{owner_of, this_user};

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

#[cfg(test)]
mod tests {
    use super::*;

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
