//! Starts that fail: listeners, and errors about a secret, which do not show it.

use std::net::TcpListener;

use crate::program::Program;

#[test]
fn a_listener_that_cannot_be_opened_is_one_line_that_names_the_address_and_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let foreign = "192.0.2.1:0";
    for (variable, key, address, reason) in [
        ("ANIMAL_STORE_HTTP__LISTEN", "http.listen", &*taken, "address already in use: "),
        ("ANIMAL_STORE_MANAGEMENT__LISTEN", "management.listen", &taken, "address already in use: "),
        ("ANIMAL_STORE_HTTP__LISTEN", "http.listen", foreign, "no network interface of this machine has this address"),
    ] {
        // Without this file, the start fails, too: listeners are bound first.
        let program = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite");
        let program = program.env("ANIMAL_STORE_STORAGE__SQLITE__PATH", "/nowhere/animal-store.db");
        let expected = format!("animal-store: cannot listen on {address} ({key}): {reason}");
        program.env(variable, address).run().assert_error(1, &[&expected]);
    }
}

#[test]
fn an_error_about_a_secret_names_its_key_and_does_not_show_it() {
    let secret = "a-secret-token";
    let file = Program::new().file("animal-store.toml", &format!("[keys.memory]\ntokens = ['x', ['{secret}']]\n"));
    let [key, misspelt] = ["keys.memory.tokens", " Keys.Memory.Token"].map(|name| format!("{name}={secret}"));
    for (program, text) in [
        (file, "keys.memory.tokens"),
        (Program::new().args(&["--set", &key]), "keys.memory.tokens"),
        (Program::new().args(&["check-config", "--set", &misspelt]), "eys."),
    ] {
        let exited = program.run();
        assert!(!exited.assert_refused(2, &[text]).output().contains(secret), "{exited:?}");
    }
}
