//! The program with its default file, or with pets in memory: starts that fail, what the log says, and the retention.

use animal_store_test_servers::wait_until;
use tempfile::TempDir;

use crate::{
    pets::{is_replay, keyed_create_request, status},
    program::{Program, TOKEN},
};

const PATH: &str = "ANIMAL_STORE_STORAGE__SQLITE__PATH";

#[test]
fn the_log_says_where_pets_and_keys_are_kept() {
    let mut file = Program::with_file().start();
    let path = file.wait_for_event("storage selected")["pets"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(
        path.starts_with("sqlite /") && path.ends_with("/animal-store.db"),
        "{path}"
    );
    assert_eq!(file.wait_for_event("storage selected")["api_keys"], path);

    let mut running = Program::with_key().start();
    let memory = running.wait_for_event("storage selected");
    assert_eq!(
        (&memory["pets"], &memory["api_keys"]),
        (&"memory".into(), &"memory".into())
    );
    let warning = running.wait_for_log(|event| event["level"] == "WARN");
    assert!(
        warning["message"]
            .as_str()
            .is_some_and(|message| message.contains("memory")),
        "{warning}"
    );
}

#[test]
fn a_file_that_cannot_be_used_is_one_line() {
    // Not even root can create a file in /sys.
    let path = "/sys/animal-store.db";
    for args in [&[][..], &["keys", "create", "--create", "--label", "x"]] {
        Program::with_file()
            .env(PATH, path)
            .args(args)
            .run()
            .assert_error(1, &["animal-store: ", path]);
    }
}

#[test]
fn other_machines_cannot_connect_before_there_is_a_key() {
    let folder = TempDir::new().unwrap();
    let program = |args| Program::in_folder(folder.path()).args(args);
    let path = folder.path().join("animal-store.db");
    let refused = program(&["--listen", "0.0.0.0:0"]).run();
    refused.assert_error(
        1,
        &[
            path.to_str().unwrap(),
            "has no API key",
            "keys create --label NAME",
        ],
    );

    let created = program(&["keys", "create", "--label", "shop"]).run();
    assert_eq!(created.code, Some(0), "{created:?}");
    let mut running = program(&["--listen", "0.0.0.0:0"]).start();
    let local = ([127, 0, 0, 1], running.address().port()).into();
    assert_eq!(status(local, &created.stdout[0]), 200);
}

#[test]
fn an_idempotency_key_is_free_after_the_configured_retention() {
    let mut running = Program::with_key()
        .env("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s")
        .start();
    let address = running.address();
    let create = || keyed_create_request(address, TOKEN, "order-1", "Rex").send();
    create().assert_status(201);
    wait_until(|| !is_replay(create().assert_status(201)));
}
