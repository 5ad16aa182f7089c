//! The sources of the configuration, `check-config`, and the report of a configuration that cannot be used.

use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use crate::{prelude::*, tls};

/// Asserts the value that `check-config` prints for a key, with its source.
#[track_caller]
fn assert_value(exited: &Exited, key: &str, expected: &str) {
    let line = format!("{key} = {expected}");
    let lines = exited.assert_success().stdout.iter();
    let mut lines = lines.map(|line| line.trim_start_matches('#'));
    assert!(lines.any(|found| found == line), "{line}: {exited:?}");
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_a_file_which_overrides_a_default() {
    let file = "[http]\nworkers = 3\nmax_in_flight = 3\nmax_body_bytes = 3000\n";
    let exited = Program::bare()
        .file("animal-store.toml", file)
        .env("ANIMAL_STORE_HTTP__MAX_IN_FLIGHT", "4")
        .env("ANIMAL_STORE_HTTP__MAX_BODY_BYTES", "4000")
        .env(
            "ANIMAL_STORE_KEYS__MEMORY__TOKENS",
            "a-secret-token-of-the-tests",
        )
        .args("check-config --set http.max_body_bytes=5000")
        .run();
    exited.assert_lacks("a-secret-token-of-the-tests");
    for (key, value) in [
        ("http.max_connections", "10000 # default"),
        ("http.workers", "3 # animal-store.toml, line 2"),
        ("http.max_in_flight", "4 # ANIMAL_STORE_HTTP__MAX_IN_FLIGHT"),
        ("http.max_body_bytes", "5000 # --set"),
        (
            "keys.memory.tokens",
            "\"(set)\" # ANIMAL_STORE_KEYS__MEMORY__TOKENS",
        ),
    ] {
        assert_value(&exited, key, value);
    }
}

#[test]
fn what_config_init_prints_is_a_file_with_the_defaults_and_the_keys_that_are_set() {
    let init = |set: &str| Program::bare().args("config init --set").args(set).run();
    let printed = init("http.workers=3");
    let lines = &printed.assert_success().stdout;
    let set = lines
        .iter()
        .position(|line| line.starts_with("http.workers"));
    let number = 1 + set.expect("a line");
    let program = Program::bare().file("animal-store.toml", &lines.join("\n"));
    let checked = program.args("check-config").run();
    let value = format!("3 # animal-store.toml, line {number}");
    assert_value(&checked, "http.workers", &value);
    let secret = init("keys.memory.tokens=top-secret");
    secret.assert_refused(2, &["keys.memory.tokens (--set)"]);
}

/// The tests of `settings` own the rule, and that a command warns of the other settings.
#[test]
fn a_command_is_refused_for_the_settings_that_it_uses_only() {
    let commands = ["health", "pets export", "keys list", "doctor", "serve"];
    // There is no instance and no store, which is a failure: 1.
    for (setting, codes) in [
        ("storage.postgres.url_file=/nowhere", [1, 2, 1, 2, 2]),
        ("keys.redis.url_file=/nowhere", [1, 1, 2, 2, 2]),
        ("http.workers=0", [1, 1, 1, 1, 2]),
        ("management.listen=a", [2, 1, 1, 1, 2]),
        // The source of API keys can be the storage.
        ("storage.backend=disk", [1, 2, 2, 2, 2]),
        ("storage.backend=postgres", [1, 2, 2, 2, 2]),
        // Another process cannot read a store in memory.
        ("http.listen=0.0.0.0:80 --memory", [1, 2, 2, 0, 2]),
    ] {
        let run = |command| {
            let program = Program::bare().set("management.listen", "127.0.0.1:1");
            program.args("--set").args(setting).args(command).run().code
        };
        assert_eq!(commands.map(run), codes.map(Some), "{setting}");
    }
}

/// As after the first half of a renewal.
#[test]
fn a_half_replaced_certificate_stops_no_command_that_does_not_use_it() {
    let (program, certificates) = tls::with_tls(Program::with_file());
    let folder = program.directory().to_owned();
    let mut running = program.start();
    let management = running.management_address().to_string();
    fs::copy(&certificates.client_key, &certificates.server_key).expect("a file");
    let command = |line: &str| {
        Program::in_folder(&folder)
            .set("management.listen", &management)
            .set("http.tls.cert_file", "server.pem")
            .set("http.tls.key_file", "server-key.pem")
            .args(line)
            .run()
    };
    let reason = "server-key.pem is not the private key of server.pem";
    for line in ["serve", "check-config"] {
        command(line).assert_refused(2, &[reason, "http.tls.key_file"]);
    }
    // On a busy machine, a check of the keys can take too long.
    wait_until(|| command("health --timeout 15s").code == Some(0));
    for line in [
        "keys create --label x",
        "keys list",
        "pets export",
        "backup backup.db",
    ] {
        command(line).assert_code(0);
    }
    let doctor = command("doctor");
    doctor.assert_code(1).assert_has(reason);
    let mut lines = doctor.stdout.iter();
    assert!(lines.any(|line| line.starts_with("ok") && line.contains("sqlite.file")));
}

#[test]
fn a_named_file_that_others_can_write_is_a_warning_and_a_default_one_is_refused() {
    let program = |line: &str| {
        let text = "[keys.memory]\ntokens_file = 'tokens'\n";
        let program = Program::new().file("animal-store.toml", text);
        let program = program.file("tokens", "top-secret");
        for (name, mode) in [("animal-store.toml", 0o666), ("tokens", 0o644)] {
            let path = program.directory().join(name);
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("permitted");
        }
        program.args(line)
    };
    let warning = "animal-store.toml (mode 666): run chmod go-w ";
    let refused = program("check-config").run();
    refused.assert_refused(2, &["is not read", warning]);
    let readable = "tokens (mode 644): run chmod o-rwx ";
    let checked = program("check-config --config animal-store.toml").run();
    checked.assert_code(0).assert_has("animal-store: warning: ");
    checked.assert_has(warning).assert_has(readable);
    let mut running = program("--config animal-store.toml").start();
    running.wait_for_warning(warning);
    running.wait_for_warning(readable);
}

#[test]
fn a_listener_that_cannot_be_opened_is_one_line_that_names_the_address_and_its_key() {
    let (_listener, taken) = listen();
    let taken = taken.to_string();
    let in_use = "address already in use: ";
    let foreign = "no network interface of this machine has this address";
    for (key, address, reason) in [
        ("http.listen", &*taken, in_use),
        ("management.listen", &taken, in_use),
        ("http.listen", "192.0.2.1:0", foreign),
    ] {
        // Without this file, the start fails, too: listeners are bound first.
        let program = Program::with_key()
            .set("storage.backend", "sqlite")
            .set("storage.sqlite.path", "/nowhere/animal-store.db");
        let expected = format!("animal-store: cannot listen on {address} ({key}): {reason}");
        let exited = program.set(key, address).run();
        exited.assert_error(1, &[&expected]);
    }
}
