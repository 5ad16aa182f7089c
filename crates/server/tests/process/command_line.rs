//! Help, version, and invalid command lines.

use crate::prelude::*;

#[test]
fn help_names_the_commands_and_options_and_is_a_success() {
    let names =
        "serve check-config config doctor health keys migrate --config --listen --set --version";
    for flag in ["--help", "-h", "help"] {
        let exited = Program::bare().args(flag).run();
        exited.assert_success();
        for name in names.split(' ') {
            exited.assert_has(name);
        }
    }
}

#[test]
fn the_version_names_the_commit_of_the_build() {
    let exited = Program::bare().args("--version").run();
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("ANIMAL_STORE_COMMIT").unwrap_or("unknown");
    let expected = format!("{version} ({commit})");
    let printed = format!("animal-store {expected}");
    assert_eq!(exited.assert_success().stdout, [printed]);
    let event = Program::new().start().wait_for_event("listening");
    assert_eq!(event["version"], expected);
}

#[test]
fn an_invalid_command_line_is_refused_without_repeating_a_value() {
    let server = "--server must be the URL of the API";
    for (line, reason) in [
        ("SECRET", "unrecognized subcommand '…'"),
        (
            "keys create --token-stdin SECRET",
            "unexpected argument '…'",
        ),
        (
            "keys create --token=SECRET",
            "unexpected argument '--token'",
        ),
        ("--set SECRET", "it has no ="),
        (
            "--config SECRET config init",
            "--config <PATH> is not an option of animal-store config init",
        ),
        (
            "openapi --server https://user:SECRET@shop.example/v1",
            server,
        ),
        ("openapi --server https://shop.example/SECRET", server),
    ] {
        let refused = Program::new().args(line).run();
        refused.assert_refused(2, &[reason]).assert_lacks("SECRET");
    }
}

fn run(line: &str) -> String {
    let program = Program::bare().set("storage.backend", "nowhere");
    let exited = program.args(line).run();
    exited.assert_success().stdout.join("\n")
}

#[test]
fn bash_completes_commands_and_options_at_each_level() {
    let complete = r#"eval "$0"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _animal__store animal-store "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"; echo "${COMPREPLY[@]}""#;
    let script = run("completions bash");
    for (line, expected) in [
        ("animal-store ke", "keys"),
        ("animal-store keys rev", "revoke"),
        ("animal-store keys create --la", "--label"),
        ("animal-store check-config --conf", "--config"),
    ] {
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", complete, &script, line]).output();
        let completed = String::from_utf8(output.expect("bash runs").stdout);
        assert_eq!(
            completed.as_deref(),
            Ok(format!("{expected}\n").as_str()),
            "{line}"
        );
    }
}

#[test]
fn completions_and_the_document_of_the_interface_need_no_valid_configuration() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&format!("completions {shell}"));
        assert!(script.contains("check-config") && script.contains("print-key"));
    }
    let document = include_str!("../../../../docs/openapi.json").trim_end();
    assert!(run("openapi") == document);
    let server = |url| format!(r#""url": "{url}""#);
    let expected = document.replacen(&server("v1"), &server("https://shop.example/v1"), 1);
    assert!(run("openapi --server https://shop.example/v1/") == expected);
}
