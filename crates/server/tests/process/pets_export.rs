//! `animal-store pets export`: what is written, and what is left of a file that cannot be completed.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::{
    program::Program,
    store::{Store, odd_pets},
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
fn an_export_has_a_header_a_line_per_pet_and_an_end() {
    for store in Store::each() {
        store.import(&odd_pets(3), &["--keep-ids"]);

        let text = store.succeed(&["pets", "export"]);

        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [header, pets @ .., end] = &lines[..] else { panic!("{text}") };
        assert_eq!((&header["animalStore"]["kind"], &header["animalStore"]["version"]), (&"pets".into(), &1.into()));
        assert_eq!(pets.iter().map(|pet| pet["id"].as_i64().expect("an id")).collect::<Vec<_>>(), [1, 3, 8]);
        assert_eq!(pets[0]["createdAt"], "2024-02-29T23:59:59.000000Z");
        assert_eq!(end["end"]["pets"], 3);
        assert_eq!(end["end"]["sha256"].as_str().expect("a digest").len(), 64);
    }
}

#[test]
fn the_format_follows_from_the_name_of_the_file() {
    let store = Store::sqlite();
    store.import(&odd_pets(3), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, args, start) in [
        ("pets.csv", &[][..], "#animal-store pets version=1"),
        ("pets.ndjson", &[], "{\"animalStore\":"),
        ("pets", &[], "{\"animalStore\":"),
        ("pets.txt", &["--format", "csv"], "#animal-store pets version=1"),
    ] {
        let path = folder.path().join(name);
        let path = path.to_str().expect("UTF-8");
        let result = store.succeed(&[&["pets", "export", "--output", path], args].concat());
        assert!(result.starts_with("pets: 3\nsha256: "), "{result}");
        assert!(fs::read_to_string(path).expect("the file").starts_with(start), "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4, "a temporary file is left");
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let store = Store::sqlite();
    store.import(&odd_pets(1), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.ndjson");
    fs::write(&path, "precious").expect("a file");

    let exited = store.run(&["pets", "export", "--output", path.to_str().expect("UTF-8")]);

    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("pets.ndjson exists"), "{exited:?}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn quiet_prints_only_errors() {
    for (args, code) in [(&["--output", "pets.csv"][..], 0), (&["--output", "/nowhere/pets.csv"], 1)] {
        let store = Store::sqlite();
        let import = store.program().args(&["pets", "import", "-", "--quiet"]).stdin(&odd_pets(1)).run();
        assert_eq!((import.code, import.output().as_str()), (Some(0), ""));
        let exited = store.run(&[&["pets", "export", "--quiet"], args].concat());
        assert_eq!((exited.code, exited.stdout.len(), exited.stderr.len()), (Some(code), 0, usize::from(code != 0)));
    }
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_ends_the_export() {
    let store = Store::sqlite();
    store.import(&odd_pets(5000), &[]);
    let Store::Sqlite(folder) = &store else { unreachable!("it is SQLite") };

    let (code, _, stderr) = shell(folder.path(), "$0 pets export >/dev/full");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("No space left on device"), "{stderr}");

    let (code, stdout, stderr) = shell(folder.path(), "$0 pets export | head -n 2; exit ${PIPESTATUS[0]}");
    assert_eq!((code, stdout.lines().count(), stderr.as_str()), (Some(1), 2, ""));
}

#[test]
fn pets_in_memory_are_not_exported_and_the_command_says_why() {
    for args in [&["pets", "export"][..], &["pets", "import", "-"], &["backup", "x"], &["restore", "x"]] {
        let exited = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "memory").args(args).run();
        assert_eq!((exited.code, &exited.stdout), (Some(2), &vec![]), "{exited:?}");
        assert!(exited.output().contains("storage.backend is memory"), "{exited:?}");
    }
}

#[test]
fn a_storage_that_does_not_exist_is_not_created_by_an_export() {
    let store = Store::sqlite();
    for args in [&["pets", "export"][..], &["backup", "x"]] {
        let exited = store.run(args);
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert!(exited.output().contains("does not exist"), "{exited:?}");
    }
}
