//! The sources of tokens, and errors about secrets that do not show them.

use animal_store_test_servers::HttpClient;

use crate::program::{Program, TOKEN};

const SECRET: &str = "a-secret-token";
const TOKENS_FILE: &str = "ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE";

#[test]
fn tokens_from_a_file_are_accepted() {
    let program = Program::new().file("tokens", "first\nsecond , process-token-1\n\n");
    let mut running = program.env(TOKENS_FILE, "tokens").start();
    let address = running.address();
    for (token, status) in [("first", 200), (TOKEN, 200), ("another", 401)] {
        assert_eq!(HttpClient::new(address).with_token(token).get("/v1/pets").status, status, "{token}");
    }
}

/// Asserts that the configuration is refused by naming the key and without showing the secret.
#[track_caller]
fn assert_refused(program: Program, name: &str) {
    let exited = program.run();
    assert_eq!(exited.code, Some(2), "{exited:?}");
    assert!(exited.stderr.join("\n").contains(name), "{name}: {exited:?}");
    assert!(!exited.output().contains(SECRET), "{exited:?}");
}

#[test]
fn a_syntax_error_in_the_line_of_a_secret_does_not_show_it() {
    for line in [
        format!("tokens = '{SECRET}"),
        format!("tokens = {SECRET}"),
        format!("tokens = ['{SECRET}' 'x']"),
        format!("tokens = '{SECRET}' x"),
        format!("tokens '{SECRET}'"),
        format!("tokens = '{SECRET}'\ntokens = '{SECRET}'"),
        format!("'{SECRET}"),
        format!("tokens = \"{SECRET}\\q\""),
    ] {
        let program = Program::new().file("animal-store.toml", &format!("[keys.memory]\n{line}\n"));
        assert_refused(program, "animal-store.toml, line ");
    }
}

#[test]
fn a_secret_of_the_wrong_type_is_refused() {
    for text in [
        format!("tokens = {{ first = '{SECRET}' }}"),
        format!("tokens = [{{ first = '{SECRET}' }}]"),
        format!("tokens = [['{SECRET}']]"),
        format!("tokens = ['{SECRET}', ['x']]"),
    ] {
        let program = Program::new().file("animal-store.toml", &format!("[keys.memory]\n{text}\n"));
        assert_refused(program.args(&["check-config"]), "keys.memory.tokens");
    }
}

#[test]
fn a_secret_on_the_command_line_is_refused_even_if_its_key_is_misspelt() {
    for name in
        ["keys.memory.tokens", "keys.memory.token", "Keys.Memory.Tokens", " keys.memory.tokens", "keys.memory.tokens "]
    {
        let setting = format!("{name}={SECRET}");
        for args in [&["--set", &*setting][..], &["check-config", "--set", &setting], &[&format!("--set={setting}")]] {
            assert_refused(Program::new().args(args), "eys.");
        }
    }
}
