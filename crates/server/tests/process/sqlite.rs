//! The program with its default file: permissions, starts that fail, and what the log says.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use animal_store_test_servers::HttpClient;
use tempfile::TempDir;

use crate::program::{Exited, Program, Running};

const PATH: &str = "ANIMAL_STORE_STORAGE__SQLITE__PATH";

/// Asserts that a program did not start, for a reason in one line that names the file and contains each of these texts.
#[track_caller]
fn assert_refused(exited: &Exited, path: &Path, texts: &[&str]) {
    assert_eq!((exited.code, exited.stderr.len()), (Some(1), 1), "{exited:?}");
    let error = &exited.stderr[0];
    assert!(error.starts_with("animal-store: ") && error.contains(&path.display().to_string()), "{error}");
    assert!(texts.iter().all(|text| error.contains(text)), "{texts:?}: {error}");
}

/// Waits for the end of the start: a signal before it does not close the file.
fn first_start(folder: &Path) -> Running {
    let mut running = Program::in_folder(folder).start();
    running.address();
    running
}

#[test]
fn only_the_owner_can_read_the_file() {
    let folder = TempDir::new().unwrap();
    let running = first_start(folder.path());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name());
    }
    assert!(names.iter().any(|name| name == "animal-store.db"), "{names:?}");

    assert_eq!(running.terminate().code, Some(0));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["animal-store.db"], "a file at rest is one file");
}

#[test]
fn the_log_says_where_pets_and_keys_are_kept() {
    let mut file = Program::with_file().start();
    let path = file.wait_for_event("storage selected")["pets"].as_str().expect("a text").to_owned();
    assert!(path.starts_with("sqlite /") && path.ends_with("/animal-store.db"), "{path}");
    assert_eq!(file.wait_for_event("storage selected")["api_keys"], path);

    let memory = Program::new().start().wait_for_event("storage selected");
    assert_eq!((&memory["pets"], &memory["api_keys"]), (&"memory".into(), &"memory".into()));
}

#[test]
fn a_file_that_cannot_be_created_is_one_line() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    // Not even root can create a file in /sys.
    for path in [Path::new("/sys/animal-store.db"), &folder.path().join("file/pets.db"), &folder.path().join("no/pets")]
    {
        let program = |args| Program::with_file().env(PATH, path.to_str().unwrap()).args(args);
        assert_refused(&program(&[]).run(), path, &[]);
        assert_refused(&program(&["keys", "create", "--create", "--label", "x"]).run(), path, &[]);
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_unchanged() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("animal-store.db");
    let text = "this is a text file, ".repeat(1000);
    fs::write(&path, &text).unwrap();

    assert_refused(&Program::in_folder(folder.path()).run(), &path, &["database"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn other_machines_cannot_connect_before_there_is_a_key() {
    let folder = TempDir::new().unwrap();
    let program = |args| Program::in_folder(folder.path()).args(args);
    let path = folder.path().join("animal-store.db");
    assert_refused(&program(&["--listen", "0.0.0.0:0"]).run(), &path, &["has no API key", "keys create --label NAME"]);

    let created = program(&["keys", "create", "--label", "shop"]).run();
    assert_eq!(created.code, Some(0), "{created:?}");
    let mut running = program(&["--listen", "0.0.0.0:0"]).start();
    let local = ([127, 0, 0, 1], running.address().port()).into();
    assert_eq!(HttpClient::new(local).with_token(&created.stdout[0]).get("/v1/pets").status, 200);
}

#[test]
fn only_the_start_and_migrate_change_the_schema() {
    let folder = TempDir::new().unwrap();
    let program = |args| Program::in_folder(folder.path()).args(args).run();
    assert_eq!(program(&["migrate"]).code, Some(1), "there is no file");
    fs::write(folder.path().join("animal-store.db"), "").unwrap();
    for args in [&["pets", "export"][..], &["keys", "create", "--label", "x"], &["keys", "list"], &["backup", "x"]] {
        let path = folder.path().join("animal-store.db");
        assert_refused(&program(args), &path, &["migrations are pending: 0001expand; run animal-store migrate"]);
        assert_eq!(fs::read(&path).unwrap(), b"", "{args:?}");
    }
    for (args, expected) in [(&["migrate", "--dry-run"][..], 1), (&["migrate"], 1), (&["migrate"], 0)] {
        let exited = program(args);
        assert_eq!((exited.code, exited.stdout), (Some(0), vec!["0001expand".to_owned(); expected]));
    }
    assert_eq!(program(&["keys", "create", "--label", "x"]).code, Some(0));
}
