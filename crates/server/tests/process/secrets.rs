//! Errors about secrets do not show them.

use crate::program::Program;

const SECRET: &str = "a-secret-token";

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
