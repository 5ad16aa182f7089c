//! The sources of the configuration, `check-config`, and the report of an invalid configuration.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use crate::program::{Exited, Program};

/// Returns the value that `check-config` prints for a key.
#[track_caller]
fn value<'a>(exited: &'a Exited, key: &str) -> &'a str {
    assert_eq!(exited.code, Some(0), "{exited:?}");
    let mut values = exited.stdout.iter().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    values.next().unwrap_or_else(|| panic!("no {key}: {exited:?}"))
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_a_file_which_overrides_a_default() {
    let file = "[http]\nworkers = 3\nmax_in_flight = 3\nmax_body_bytes = 3000\n";
    let exited = Program::bare()
        .file("animal-store.toml", file)
        .env("ANIMAL_STORE_HTTP__MAX_IN_FLIGHT", "4")
        .env("ANIMAL_STORE_HTTP__MAX_BODY_BYTES", "4000")
        .args(&["check-config", "--set", "http.max_body_bytes=5000"])
        .run();

    assert_eq!(value(&exited, "http.max_connections"), "10000");
    assert_eq!(value(&exited, "http.workers"), "3");
    assert_eq!(value(&exited, "http.max_in_flight"), "4");
    assert_eq!(value(&exited, "http.max_body_bytes"), "5000");
}

#[test]
fn a_named_file_replaces_the_default_file() {
    let program = |file| {
        let program = Program::bare().file("animal-store.toml", "[http]\nworkers = 3\n");
        program.file("other.toml", "[log]\nformat = 'text'\n").args(&["check-config", "--config", file]).run()
    };

    let exited = program("other.toml");
    assert_eq!((value(&exited, "http.workers"), value(&exited, "log.format")), ("auto", "text"));
    program("missing.toml").assert_refused(2, &["missing.toml: cannot be read: "]);
}

#[test]
fn check_config_prints_every_key_and_no_secret() {
    let token = "a-secret-token";
    let exited = Program::bare().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", token).args(&["check-config"]).run();

    let keys: Vec<_> = exited.stdout.iter().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    let expected: Vec<_> = animal_store_server::Config::all_keys().iter().map(|key| key.name).collect();
    assert_eq!(keys, expected);
    assert_eq!(value(&exited, "keys.memory.tokens"), "(set)");
    assert!(!exited.output().contains(token), "{exited:?}");
    assert_eq!(exited.stderr, Vec::<String>::new());
}

#[test]
fn a_default_file_that_is_a_dangling_link_is_refused() {
    let program = Program::bare().args(&["check-config"]);
    symlink("missing.toml", program.directory().join("animal-store.toml")).unwrap();
    program.run().assert_refused(2, &["animal-store.toml: cannot be read: "]);
}

#[test]
fn a_file_with_secrets_that_others_can_write_is_a_warning() {
    let program = || {
        let program = Program::new().file("animal-store.toml", "[keys.memory]\ntokens = 'top-secret'\n");
        let path = program.directory().join("animal-store.toml");
        fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
        program
    };
    let warning = "animal-store.toml contains secrets, and other users can write to it (mode 666): \
                   run chmod go-w animal-store.toml";

    let checked = program().args(&["check-config"]).run();
    assert_eq!(value(&checked, "keys.memory.tokens"), "(set)");
    assert_eq!(checked.stderr, [format!("animal-store: warning: {warning}")]);

    let mut running = program().start();
    running.address();
    let served = running.terminate();
    let logged = |line: &&String| line.contains(warning) && line.contains("WARN");
    assert_eq!(served.stdout.iter().filter(logged).count(), 1, "{served:?}");
}
