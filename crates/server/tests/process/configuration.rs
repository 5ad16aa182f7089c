//! The sources of the configuration, `check-config`, and the report of an invalid configuration.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use crate::{
    program::{Exited, Program},
    tls,
};

/// Returns the value that `check-config` prints for a key, with its source.
#[track_caller]
fn value<'a>(exited: &'a Exited, key: &str) -> &'a str {
    assert_eq!(exited.code, Some(0), "{exited:?}");
    let lines = exited.stdout.iter().map(|line| line.trim_start_matches('#'));
    let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
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

    assert_eq!(value(&exited, "http.max_connections"), "10000 # default");
    assert_eq!(value(&exited, "http.workers"), "3 # animal-store.toml, line 2");
    assert_eq!(value(&exited, "http.max_in_flight"), "4 # ANIMAL_STORE_HTTP__MAX_IN_FLIGHT");
    assert_eq!(value(&exited, "http.max_body_bytes"), "5000 # --set");
}

#[test]
fn a_named_file_replaces_the_default_file() {
    let program = |file| {
        let program = Program::bare().file("animal-store.toml", "[http]\nworkers = 3\n");
        program.file("other.toml", "[log]\nformat = 'text'\n").args(&["check-config", "--config", file]).run()
    };

    let exited = program("other.toml");
    assert_eq!(value(&exited, "http.workers"), "\"auto\" # default");
    assert_eq!(value(&exited, "log.format"), "\"text\" # other.toml, line 2");
    program("missing.toml").assert_refused(2, &["missing.toml: cannot be read: "]);
}

#[test]
fn check_config_prints_every_key_and_no_secret() {
    let token = "a-secret-token";
    let exited = Program::bare().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", token).args(&["check-config"]).run();

    let lines = exited.stdout.iter().map(|line| line.trim_start_matches('#'));
    let keys: Vec<_> = lines.filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    let expected: Vec<_> = animal_store_server::Config::all_keys().iter().map(|key| key.name).collect();
    assert_eq!(keys, expected);
    assert_eq!(value(&exited, "keys.memory.tokens"), "\"(set)\" # ANIMAL_STORE_KEYS__MEMORY__TOKENS");
    assert!(!exited.output().contains(token), "{exited:?}");
    assert_eq!(exited.stderr, Vec::<String>::new());
}

#[test]
fn what_config_init_prints_is_a_file_with_the_defaults_and_the_keys_that_are_set() {
    let init = |args: &[&str]| Program::bare().args(&["config", "init"]).args(args).run();
    let written = init(&["--set", "http.workers=3", "--set", "storage.sqlite.path=/data/a.db"]);
    let file = written.assert_success().stdout.join("\n");
    let checked = Program::bare().file("animal-store.toml", &file).args(&["check-config"]).run();
    let set: Vec<_> = checked.stdout.iter().filter(|line| !line.ends_with(" # default")).collect();
    let number = |key: &str| 1 + file.lines().position(|line| line.starts_with(key)).expect("a line");
    let [workers, path] = ["http.workers", "storage.sqlite.path"].map(number);
    let expected = [
        format!("http.workers = 3 # animal-store.toml, line {workers}"),
        "keys.backend = \"sqlite\" # storage.backend".to_owned(),
        format!("storage.sqlite.path = \"/data/a.db\" # animal-store.toml, line {path}"),
    ];
    assert!(set.len() == expected.len() && expected.iter().all(|line| set.contains(&line)), "{set:?}");
    init(&["--set", "keys.memory.tokens=top-secret"]).assert_refused(2, &["keys.memory.tokens (--set)"]);
}

/// As after the first half of a renewal.
#[test]
fn a_half_replaced_certificate_stops_no_command_that_does_not_use_it() {
    let (program, certificates) = tls::with_tls(Program::with_file());
    let folder = program.directory().to_owned();
    let mut running = program.start();
    let management = running.management_address().to_string();
    let listen = running.address().to_string();
    fs::copy(&certificates.client_key, &certificates.server_key).expect("a file");
    let command = |args: &[&str]| {
        let program = Program::in_folder(&folder).env("ANIMAL_STORE_MANAGEMENT__LISTEN", &management);
        let files = ["cert_file", "key_file"].map(|name| format!("ANIMAL_STORE_HTTP__TLS__{}", name.to_uppercase()));
        let program = program.env("ANIMAL_STORE_HTTP__LISTEN", &listen).env(&files[0], "server.pem");
        program.env(&files[1], "server-key.pem").args(args).run()
    };
    command(&["check-config"]).assert_refused(2, &["http.tls.key_file"]);

    let created = command(&["keys", "create", "--label", "x"]);
    assert_eq!(created.code, Some(0), "{created:?}");
    let list = command(&["keys", "list", "--json"]).stdout.join("");
    let id =
        serde_json::from_str::<serde_json::Value>(&list).expect("JSON")[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(command(&["keys", "revoke", &id]).code, Some(0));
    command(&["health", "--timeout", "15s"]).assert_success();
    command(&["pets", "export"]).assert_success();
    command(&["backup", "backup.db"]).assert_success();
    let doctor = command(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    let lines = doctor.stdout.join("\n");
    assert!(
        lines.contains("server-key.pem is not the private key") && lines.contains("ok       sqlite.file"),
        "{lines}"
    );
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
    assert_eq!(value(&checked, "keys.memory.tokens"), "\"(set)\" # animal-store.toml, line 2");
    assert_eq!(checked.stderr, [format!("animal-store: warning: {warning}")]);

    let mut running = program().start();
    running.address();
    let served = running.terminate();
    let logged = |line: &&String| line.contains(warning) && line.contains("WARN");
    assert_eq!(served.stdout.iter().filter(logged).count(), 1, "{served:?}");
}
