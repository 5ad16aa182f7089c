//! `animal-store keys` beside a running server on one file.

use std::{fs, path::Path};

use animal_store_test_servers::wait_until;
use tempfile::TempDir;

use crate::{keys::token_and_id, pets::status, program::Program};

fn keys(folder: &Path, args: &[&str]) -> Program {
    Program::in_folder(folder).args(&["keys"]).args(args)
}

#[test]
fn keys_are_administered_beside_a_running_server() {
    let folder = TempDir::new().unwrap();
    let mut running = Program::in_folder(folder.path()).print_key().start();
    let address = running.address();

    let (old, id) = token_and_id(&keys(folder.path(), &["create", "--label", "shop"]).run());
    wait_until(|| status(address, &old) == 200);

    let (new, same) = token_and_id(&keys(folder.path(), &["rotate", &id, "--grace", "0s"]).run());
    assert_eq!(same, id);
    wait_until(|| (status(address, &new), status(address, &old)) == (200, 401));

    let listed = keys(folder.path(), &["list"]).run();
    for label in ["quickstart", "shop"] {
        assert!(listed.stdout.iter().any(|line| line.contains(label)), "{listed:?}");
    }
    assert_eq!(keys(folder.path(), &["revoke", &id]).run().code, Some(0));
    wait_until(|| status(address, &new) == 401);
}

#[test]
fn only_the_flag_create_creates_the_file() {
    let folder = TempDir::new().unwrap();
    for args in [&["list"][..], &["revoke", "a"], &["rotate", "a"], &["create", "--label", "shop"]] {
        let exited = keys(folder.path(), args).run();
        exited.assert_refused(1, &["animal-store.db: the file does not exist"]);
        let advice = "to make a new store, add --create";
        assert_eq!(exited.output().ends_with(advice), args[0] == "create", "{exited:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    assert_eq!(keys(folder.path(), &["create", "--create", "--label", "shop"]).run().code, Some(0));
}
