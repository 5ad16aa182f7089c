//! A start whose file has no valid API key, or one that is not valid, and a start that fails after it has created one.

use std::{fs, process::Command};

use animal_store_test_servers::wait_until;
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use serde_json::Value;
use tempfile::TempDir;

use crate::{keys::token_and_id, pets::status, program::Program, quickstart::printed};

/// What a later start prints before the command that creates a key.
const NO_KEY: &str = "To create an API key: ";

#[test]
fn a_start_that_fails_leaves_no_key() {
    let folder = TempDir::new().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let exited = Program::in_folder(folder.path()).print_key().stderr(full).start().wait();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    let messages: Vec<_> = exited.events().into_iter().filter(|event| event["target"] == "audit").collect();
    let changes: Vec<_> = messages.iter().filter_map(|event| event["message"].as_str()).collect();
    assert_eq!(changes, ["API key created", "API key revoked"]);

    let list = Program::in_folder(folder.path()).args(&["keys", "list", "--json"]).run();
    assert_eq!((list.code, list.stdout), (Some(0), vec!["[]".to_owned()]));
    printed(&mut Program::in_folder(folder.path()).print_key().start(), NO_KEY);
}

#[test]
fn a_restart_without_any_valid_key_creates_none_and_prints_how_to_create_one() {
    let folder = TempDir::new().unwrap();
    let keys = |args: &[&str]| Program::in_folder(folder.path()).args(&["keys"]).args(args).run();
    let (_, id) = token_and_id(&keys(&["create", "--create", "--label", "shop"]));
    assert_eq!(keys(&["revoke", &id]).code, Some(0));

    let mut running = Program::in_folder(folder.path()).print_key().start();
    let create_key = printed(&mut running, NO_KEY);
    assert_eq!(keys(&["list", "--json"]).stdout, ["[]"]);
    let output = Command::new("sh").args(["-c", &create_key]).current_dir(folder.path()).output().unwrap();
    let token = String::from_utf8(output.stdout).unwrap();
    let created: Value = serde_json::from_slice(&output.stderr).unwrap();
    let address = running.address();
    wait_until(|| status(address, token.trim()) == 200);
    let exited = running.terminate();
    assert!(!exited.output().contains("curl"), "{exited:?}");

    assert_eq!(keys(&["revoke", created["api_key"].as_str().unwrap()]).code, Some(0));
    let refused = Program::in_folder(folder.path()).args(&["--listen", "0.0.0.0:0"]).run();
    refused.assert_error(1, &["has no API key, and other machines can connect"]);
}

#[test]
fn an_invalid_key_does_not_prevent_the_start() {
    let folder = TempDir::new().unwrap();
    let keys = |args: &[&str]| Program::in_folder(folder.path()).args(&["keys"]).args(args).run();
    let (token, _) = token_and_id(&keys(&["create", "--create", "--label", "good"]));
    let (_, id) = token_and_id(&keys(&["create", "--label", "bad"]));
    let path = folder.path().join("animal-store.db");
    let mut file = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    file.batch_execute(&format!("UPDATE api_keys SET label = '' WHERE id = '{id}'")).unwrap();
    drop(file);

    let mut running = Program::in_folder(folder.path()).start();
    let event = running.wait_for_event("an API key is not valid: this command revokes it");
    assert!(event["reason"].as_str().is_some_and(|reason| reason.contains(&id)), "{event}");
    let revoke = event["command"].as_str().expect("a command");
    assert_eq!(status(running.address(), &token), 200);
    let revoke = revoke.strip_suffix(" ID").unwrap();
    let output = Command::new("sh").args(["-c", &format!("{revoke} {id}")]).current_dir(folder.path()).output();
    assert!(output.unwrap().status.success());
    assert_eq!(keys(&["list"]).code, Some(0));
}
