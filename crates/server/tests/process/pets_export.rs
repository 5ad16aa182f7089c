//! `animal-store pets export`: what is written, and what is left of a file that cannot be completed.

use std::{fs, path::Path, process::Command};

use crate::{
    program::Program,
    store::{Store, odd_pets, pause},
};

/// Runs a script with the program as `$0`, over the SQLite file `animal-store.db` in this folder.
fn shell(folder: &Path, script: &str) -> (Option<i32>, String, String) {
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_animal-store")])
        .env_clear()
        .current_dir(folder)
        .output()
        .expect("bash runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn an_export_has_each_pet_as_the_service_sends_it() {
    for store in Store::each() {
        store.import(&odd_pets(2500));
        let pages = store.pages();
        let sent = pages.iter().map(|page| page.trim_start_matches('[').trim_end_matches(']'));
        let exported = store.succeed(&["pets", "export"]);
        assert_eq!(exported.lines().collect::<Vec<_>>().join(","), sent.collect::<Vec<_>>().join(","));
        assert_eq!(exported.lines().count(), 2500);
    }
}

#[test]
fn an_export_can_be_imported() {
    let [from, to] = Store::each();
    from.import(&odd_pets(100));
    to.import(&from.succeed(&["pets", "export"]));
    let (mut exported, mut imported) = (from.names(), to.names());
    exported.sort_unstable();
    imported.sort_unstable();
    assert_eq!(imported, exported);
}

#[test]
fn a_file_gets_its_name_when_it_is_complete() {
    let store = Store::sqlite();
    store.import(&odd_pets(20_000));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.ndjson");
    for (milliseconds, signal) in [(5, "INT"), (20, "KILL"), (40, "INT"), (80, "KILL"), (160, "INT")] {
        let running = store.program().args(&["pets", "export", path.to_str().expect("UTF-8")]).start();
        pause(milliseconds);
        running.signal(signal);
        let exited = running.wait();
        assert_eq!(path.exists(), exited.code == Some(0), "{exited:?}");
        if path.exists() {
            assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), 20_000);
            fs::remove_file(&path).expect("removed");
        }
    }
    let result = store.succeed(&["pets", "export", path.to_str().expect("UTF-8")]);
    assert_eq!(
        (result.as_str(), fs::read_to_string(&path).expect("a file").lines().count()),
        ("pets: 20000\n", 20_000)
    );
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let store = Store::sqlite();
    store.import(&odd_pets(1));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.ndjson");
    fs::write(&path, "precious").expect("a file");

    let exited = store.run(&["pets", "export", path.to_str().expect("UTF-8")]);

    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("pets.ndjson exists"), "{exited:?}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn quiet_prints_only_errors() {
    let store = Store::sqlite();
    store.import(&odd_pets(1));
    for (file, code) in [("pets.ndjson", 0), ("/nowhere/pets.ndjson", 1)] {
        let exited = store.run(&["pets", "export", "--quiet", file]);
        assert_eq!((exited.code, exited.stdout.len(), exited.stderr.len()), (Some(code), 0, usize::from(code != 0)));
    }
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_ends_the_export() {
    let store = Store::sqlite();
    store.import(&odd_pets(5000));
    let Store::Sqlite(folder) = &store else { unreachable!("it is SQLite") };

    let (code, _, stderr) = shell(folder.path(), "$0 pets export >/dev/full");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("No space left on device"), "{stderr}");

    let (code, stdout, stderr) = shell(folder.path(), "$0 pets export | head -n 2; exit ${PIPESTATUS[0]}");
    assert_eq!((code, stdout.lines().count(), stderr.as_str()), (Some(1), 2, ""));
}

#[test]
fn pets_in_memory_are_not_exported_and_the_command_says_why() {
    for args in [&["pets", "export"][..], &["backup", "x"]] {
        let exited = Program::with_key().args(args).run();
        assert_eq!((exited.code, &exited.stdout), (Some(2), &vec![]), "{exited:?}");
        assert!(exited.output().contains("storage.backend is memory"), "{exited:?}");
    }
}

#[test]
fn commands_that_read_change_no_byte_of_the_file_and_create_none() {
    let reads = [&["pets", "export"][..], &["keys", "list"], &["doctor"], &["backup", "copy.db"]];
    let keys = |store: &Store| store.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite");
    let missing = Store::sqlite();
    for args in reads {
        let exited = keys(&missing).args(args).run();
        assert_eq!(exited.code, Some(1), "{args:?}: {exited:?}");
        assert!(exited.output().contains("does not exist"), "{args:?}: {exited:?}");
        assert!(!missing.has_file(), "{args:?}");
    }
    let store = Store::sqlite();
    store.import(&odd_pets(100));
    let Store::Sqlite(folder) = &store else { unreachable!("it is SQLite") };
    let before = fs::read(folder.path().join("animal-store.db")).expect("a file");
    for args in reads {
        let exited = keys(&store).args(args).run();
        assert_eq!(exited.code, Some(0), "{args:?}: {exited:?}");
        assert!(fs::read(folder.path().join("animal-store.db")).expect("a file") == before, "{args:?}");
    }
}
