//! The command line itself.

use crate::program::Program;

#[test]
fn help_names_the_commands_and_options_and_is_a_success() {
    for flag in ["--help", "-h", "help"] {
        let ended = Program::bare().args(&[flag]).run();

        assert_eq!(ended.code, Some(0), "{ended:?}");
        for name in ["serve", "check-config", "--config", "--listen", "--set", "--version"] {
            assert!(ended.stdout.join("\n").contains(name), "{name}: {ended:?}");
        }
    }
}

#[test]
fn the_version_is_the_package_version() {
    let ended = Program::bare().args(&["--version"]).run();

    assert_eq!((ended.code, ended.stdout), (Some(0), vec![format!("animal-store {}", env!("CARGO_PKG_VERSION"))]));
}

#[test]
fn what_the_command_line_does_not_know_is_refused() {
    for args in [
        &["sell"][..],
        &["serve", "more"],
        &["--colour"],
        &["--listen"],
        &["--set"],
        &["--set", "http.listen"],
        &["--config"],
        &["-x"],
    ] {
        let ended = Program::new().args(args).run();

        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert_eq!(ended.stdout, Vec::<String>::new());
        assert!(!ended.stderr.is_empty());
    }
}

#[test]
fn the_interface_is_printed_whatever_the_configuration_is() {
    let printed = Program::bare().args(&["openapi"]).env("ANIMAL_STORE_STORAGE__BACKEND", "nowhere").run();
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.stdout.join("\n") == include_str!("../../../../docs/openapi.json").trim_end());
}
