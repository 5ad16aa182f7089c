//! Errors about secrets do not show them. The unit tests of the configuration and of its options cover every form.

use crate::program::Program;

const SECRET: &str = "a-secret-token";

#[test]
fn an_error_about_a_secret_names_its_key_and_does_not_show_it() {
    let with_file = |line: &str| Program::new().file("animal-store.toml", &format!("[keys.memory]\n{line}\n"));
    let with_args = |args: &[&str]| Program::new().args(args);
    let [key, misspelt] = ["keys.memory.tokens", " Keys.Memory.Token"].map(|name| format!("{name}={SECRET}"));
    for (program, text) in [
        (with_file(&format!("tokens = '{SECRET}")), "animal-store.toml, line 2"),
        (with_file(&format!("tokens = \"{SECRET}\\q\"")), "animal-store.toml, line 2"),
        (with_file(&format!("tokens = '{SECRET}'\ntokens = '{SECRET}'")), "animal-store.toml, line 3"),
        (with_file(&format!("tokens = {{ first = '{SECRET}' }}")), "keys.memory.tokens"),
        (with_file(&format!("tokens = ['x', ['{SECRET}']]")), "keys.memory.tokens"),
        (with_args(&["--set", &key]), "keys.memory.tokens"),
        (with_args(&["check-config", "--set", &misspelt]), "eys."),
    ] {
        let exited = program.run();
        assert!(!exited.assert_refused(2, &[text]).output().contains(SECRET), "{exited:?}");
    }
}
