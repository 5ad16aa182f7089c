//! Tokens: where they may come from, and that no mistake shows them.

use crate::program::{Program, get};

const SECRET: &str = "a-token-that-nobody-may-see";

#[track_caller]
fn assert_accepted(program: Program, tokens: &[&str]) {
    let mut running = program.start();
    let address = running.address();
    for token in tokens {
        let response = get(address, "/v1/pets", token);
        assert!(response.starts_with("HTTP/1.1 200 "), "{token}: {response}");
    }
    assert!(get(address, "/v1/pets", "another").starts_with("HTTP/1.1 401 "));
}

#[test]
fn tokens_may_stand_in_a_file_of_their_own() {
    let program = Program::new().file("tokens", "first-token\nsecond-token , third-token\n\n");

    assert_accepted(
        program.env("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", "tokens"),
        &["first-token", "second-token", "third-token"],
    );
}

#[test]
fn tokens_may_be_a_list_in_the_configuration_file() {
    let file = "[keys.memory]\ntokens = ['first-token', 'second-token']\n";

    assert_accepted(Program::new().file("animal-store.toml", file), &["first-token", "second-token"]);
}

#[test]
fn tokens_may_be_separated_by_commas_in_the_environment() {
    let program = Program::new().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "first-token, second-token,");

    assert_accepted(program, &["first-token", "second-token"]);
}

/// The configuration is refused, and nobody sees the secret.
#[track_caller]
fn assert_refused_in_silence(program: Program, named: &str) {
    let ended = program.run();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.join("\n").contains(named), "{named}: {ended:?}");
    assert!(!ended.output().contains(SECRET), "{ended:?}");
}

#[test]
fn tokens_both_given_and_in_a_file_are_refused() {
    let program = Program::new().file("tokens", SECRET).env("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", "tokens");

    assert_refused_in_silence(
        program.env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", SECRET),
        "ANIMAL_STORE_KEYS__MEMORY__TOKENS",
    );
}

#[test]
fn a_file_of_tokens_that_cannot_be_read_is_refused() {
    for path in ["missing", "."] {
        let program = Program::new().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", path);
        assert_refused_in_silence(program, "ANIMAL_STORE_KEYS__MEMORY__TOKENS");
    }
}

#[test]
fn a_token_that_is_no_token_is_refused_unseen() {
    for token in [format!("{SECRET} x"), format!("{SECRET}é"), format!("good,{SECRET}\u{1}"), format!("\"{SECRET}\"")]
    {
        let program = Program::new().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", &token);
        assert_refused_in_silence(program, "ANIMAL_STORE_KEYS__MEMORY__TOKENS");
    }
}

#[test]
fn a_mistake_in_the_line_of_a_secret_does_not_show_it() {
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
        assert_refused_in_silence(program, "animal-store.toml: line ");
    }
}

#[test]
fn a_secret_of_the_wrong_shape_is_refused_unseen() {
    for text in [
        format!("tokens = {{ first = '{SECRET}' }}"),
        format!("tokens = [{{ first = '{SECRET}' }}]"),
        format!("tokens = [['{SECRET}']]"),
        format!("tokens = ['{SECRET}', ['x']]"),
    ] {
        let program = Program::new().file("animal-store.toml", &format!("[keys.memory]\n{text}\n"));
        assert_refused_in_silence(program.args(&["check-config"]), "keys.memory.tokens");
    }
}

#[test]
fn a_secret_on_the_command_line_is_refused_unseen() {
    for args in [
        &["--set", "keys.memory.tokens=a-token-that-nobody-may-see"][..],
        &["--set=keys.memory.tokens=a-token-that-nobody-may-see"],
        &["check-config", "--set", "keys.memory.tokens=a-token-that-nobody-may-see"],
    ] {
        assert_refused_in_silence(Program::new().args(args), "keys.memory.tokens");
    }
}

#[test]
fn a_misspelt_secret_on_the_command_line_is_refused_unseen() {
    for name in ["keys.memory.token", "Keys.Memory.Tokens", " keys.memory.tokens", "keys.memory.tokens "] {
        let setting = format!("{name}={SECRET}");
        assert_refused_in_silence(Program::new().args(&["--set", &setting]), "eys.");
    }
}
