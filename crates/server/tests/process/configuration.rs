//! The sources of the configuration, `check-config`, and the report of a configuration that cannot be used.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
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
    let lines = exited
        .stdout
        .iter()
        .map(|line| line.trim_start_matches('#'));
    let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    values
        .next()
        .unwrap_or_else(|| panic!("no {key}: {exited:?}"))
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_a_file_which_overrides_a_default() {
    let file = "[http]\nworkers = 3\nmax_in_flight = 3\nmax_body_bytes = 3000\n";
    let token = "a-secret-token";
    let exited = Program::bare()
        .file("animal-store.toml", file)
        .env("ANIMAL_STORE_HTTP__MAX_IN_FLIGHT", "4")
        .env("ANIMAL_STORE_HTTP__MAX_BODY_BYTES", "4000")
        .env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", token)
        .args(&["check-config", "--set", "http.max_body_bytes=5000"])
        .run();

    assert_eq!(value(&exited, "http.max_connections"), "10000 # default");
    assert_eq!(
        value(&exited, "http.workers"),
        "3 # animal-store.toml, line 2"
    );
    assert_eq!(
        value(&exited, "http.max_in_flight"),
        "4 # ANIMAL_STORE_HTTP__MAX_IN_FLIGHT"
    );
    assert_eq!(value(&exited, "http.max_body_bytes"), "5000 # --set");
    assert_eq!(
        value(&exited, "keys.memory.tokens"),
        "\"(set)\" # ANIMAL_STORE_KEYS__MEMORY__TOKENS"
    );
    assert!(
        !exited.assert_success().output().contains(token),
        "{exited:?}"
    );
}

#[test]
fn a_named_file_replaces_the_default_file_and_one_that_cannot_be_read_is_refused() {
    let program = |args: &[&str]| {
        let program = Program::bare().file("animal-store.toml", "[http]\nworkers = 3\n");
        program
            .file("other.toml", "[log]\nformat = 'text'\n")
            .args(&["check-config"])
            .args(args)
    };
    let exited = program(&["--config", "other.toml"]).run();
    assert_eq!(value(&exited, "http.workers"), "\"auto\" # default");
    assert_eq!(
        value(&exited, "log.format"),
        "\"text\" # other.toml, line 2"
    );
    let dangling = Program::bare().args(&["check-config"]);
    symlink(
        "missing.toml",
        dangling.directory().join("animal-store.toml"),
    )
    .unwrap();
    dangling
        .run()
        .assert_refused(2, &["animal-store.toml: cannot be read: "]);
}

#[test]
fn what_config_init_prints_is_a_file_with_the_defaults_and_the_keys_that_are_set() {
    let init = |args: &[&str]| Program::bare().args(&["config", "init"]).args(args).run();
    let file = init(&["--set", "http.workers=3"])
        .assert_success()
        .stdout
        .join("\n");
    let checked = Program::bare()
        .file("animal-store.toml", &file)
        .args(&["check-config"])
        .run();
    let line = 1 + file
        .lines()
        .position(|line| line.starts_with("http.workers"))
        .expect("a line");
    assert_eq!(
        value(&checked, "http.workers"),
        format!("3 # animal-store.toml, line {line}")
    );
    init(&["--set", "keys.memory.tokens=top-secret"])
        .assert_refused(2, &["keys.memory.tokens (--set)"]);
}

/// As after the first half of a renewal.
#[test]
fn a_half_replaced_certificate_stops_no_command_that_does_not_use_it() {
    let (program, certificates) = tls::with_tls(Program::with_file());
    let folder = program.directory().to_owned();
    let mut running = program.start();
    let management = running.management_address().to_string();
    fs::copy(&certificates.client_key, &certificates.server_key).expect("a file");
    let command = |args: &[&str]| {
        Program::in_folder(&folder)
            .env("ANIMAL_STORE_MANAGEMENT__LISTEN", &management)
            .env("ANIMAL_STORE_HTTP__TLS__CERT_FILE", "server.pem")
            .env("ANIMAL_STORE_HTTP__TLS__KEY_FILE", "server-key.pem")
            .args(args)
            .run()
    };
    for args in [&[][..], &["check-config"]] {
        command(args).assert_refused(
            2,
            &[
                "server-key.pem is not the private key of server.pem",
                "http.tls.key_file",
            ],
        );
    }
    for args in [
        &["keys", "create", "--label", "x"][..],
        &["keys", "list"],
        &["health", "--timeout", "15s"],
        &["pets", "export"],
        &["backup", "backup.db"],
    ] {
        let exited = command(args);
        assert_eq!(exited.code, Some(0), "{args:?}: {exited:?}");
    }
    let doctor = command(&["doctor"]);
    let has_line = |start: &str, text: &str| {
        let mut lines = doctor.stdout.iter();
        lines.any(|line| line.starts_with(start) && line.contains(text))
    };
    assert!(has_line("error", "server-key.pem is not the private key"));
    assert!(has_line("ok", "sqlite.file"));
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
}

#[test]
fn a_named_file_that_others_can_write_is_a_warning_and_a_default_one_is_refused() {
    let unnamed = || {
        let program = Program::new().file(
            "animal-store.toml",
            "[keys.memory]\ntokens = 'top-secret'\n",
        );
        let path = program.directory().join("animal-store.toml");
        fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
        program
    };
    let program = || unnamed().args(&["--config", "animal-store.toml"]);
    let warning = "animal-store.toml (mode 666): run chmod go-w ";
    unnamed()
        .args(&["check-config"])
        .run()
        .assert_refused(2, &["is not read", warning]);
    let checked = program().args(&["check-config"]).run();
    assert!(
        checked.code == Some(0) && checked.stderr[0].starts_with("animal-store: warning: "),
        "{checked:?}"
    );
    program()
        .start()
        .wait_for_log(|event| event["level"] == "WARN" && event.to_string().contains(warning));
}

#[test]
fn a_listener_that_cannot_be_opened_is_one_line_that_names_the_address_and_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let foreign = "192.0.2.1:0";
    for (variable, key, address, reason) in [
        (
            "ANIMAL_STORE_HTTP__LISTEN",
            "http.listen",
            &*taken,
            "address already in use: ",
        ),
        (
            "ANIMAL_STORE_MANAGEMENT__LISTEN",
            "management.listen",
            &taken,
            "address already in use: ",
        ),
        (
            "ANIMAL_STORE_HTTP__LISTEN",
            "http.listen",
            foreign,
            "no network interface of this machine has this address",
        ),
    ] {
        // Without this file, the start fails, too: listeners are bound first.
        let program = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite");
        let program = program.env(
            "ANIMAL_STORE_STORAGE__SQLITE__PATH",
            "/nowhere/animal-store.db",
        );
        let expected = format!("animal-store: cannot listen on {address} ({key}): {reason}");
        program
            .env(variable, address)
            .run()
            .assert_error(1, &[&expected]);
    }
}
