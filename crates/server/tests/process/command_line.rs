//! Help, version, and invalid command lines.

use crate::program::Program;

#[test]
fn help_names_the_commands_and_options_and_is_a_success() {
    for flag in ["--help", "-h", "help"] {
        let exited = Program::bare().args(&[flag]).run();

        assert_eq!(exited.code, Some(0), "{exited:?}");
        for name in [
            "serve",
            "check-config",
            "doctor",
            "health",
            "keys",
            "migrate",
            "--config",
            "--listen",
            "--set",
            "--version",
        ] {
            assert!(exited.stdout.join("\n").contains(name), "{name}: {exited:?}");
        }
    }
}

#[test]
fn the_version_is_the_package_version() {
    let exited = Program::bare().args(&["--version"]).run();

    assert_eq!((exited.code, exited.stdout), (Some(0), vec![format!("animal-store {}", env!("CARGO_PKG_VERSION"))]));
}

#[test]
fn an_invalid_command_line_is_refused() {
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
        let exited = Program::new().args(args).run();

        assert_eq!((exited.code, &exited.stdout), (Some(2), &vec![]), "{args:?}: {exited:?}");
        assert!(!exited.stderr.is_empty());
    }
}

#[test]
fn openapi_needs_no_valid_configuration() {
    let exited = Program::bare().args(&["openapi"]).env("ANIMAL_STORE_STORAGE__BACKEND", "nowhere").run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    assert!(exited.stdout.join("\n") == include_str!("../../../../docs/openapi.json").trim_end());
}
