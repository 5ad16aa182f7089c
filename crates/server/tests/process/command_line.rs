//! Help, version, and invalid command lines.

use crate::program::Program;

#[test]
fn help_names_the_commands_and_options_and_is_a_success() {
    for flag in ["--help", "-h", "help"] {
        let exited = Program::bare().args(&[flag]).run();

        let help = exited.assert_success().stdout.join("\n");
        for name in
            "serve check-config config doctor health keys migrate --config --listen --set --version"
                .split(' ')
        {
            assert!(help.contains(name), "{name}: {help}");
        }
    }
}

#[test]
fn the_version_names_the_commit_of_the_build() {
    let exited = Program::bare().args(&["--version"]).run();

    assert_eq!(
        (exited.code, exited.stdout.len()),
        (Some(0), 1),
        "{exited:?}"
    );
    let logged = Program::new().start().wait_for_event("listening")["version"]
        .as_str()
        .map(str::to_owned);
    assert_eq!(
        exited.stdout[0].strip_prefix("animal-store "),
        logged.as_deref()
    );
    let prefix = concat!("animal-store ", env!("CARGO_PKG_VERSION"), " (");
    let commit = exited.stdout[0]
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(')'));
    let expected = option_env!("ANIMAL_STORE_COMMIT").unwrap_or("unknown");
    assert_eq!(commit, Some(expected));
}

#[test]
fn an_invalid_command_line_is_refused() {
    for args in [
        &["sell"][..],
        &["serve", "more"],
        &["--colour"],
        &["--set", "http.listen"],
    ] {
        Program::new().args(args).run().assert_refused(2, &[]);
    }
}

#[test]
fn completions_and_the_document_of_the_interface_need_no_valid_configuration() {
    let run = |args: &[&str]| {
        let exited = Program::bare()
            .args(args)
            .env("ANIMAL_STORE_STORAGE__BACKEND", "nowhere")
            .run();
        exited.assert_success().stdout.join("\n")
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(
            ["check-config", "print-key"]
                .iter()
                .all(|name| script.contains(name)),
            "{script}"
        );
    }
    let document = include_str!("../../../../docs/openapi.json").trim_end();
    assert!(run(&["openapi"]) == document);
    let url = "https://shop.example/v1";
    let expected = document.replacen(r#""url": "v1""#, &format!(r#""url": "{url}""#), 1);
    assert!(run(&["openapi", "--server", "https://shop.example/v1/"]) == expected);
}

#[test]
fn a_server_that_is_not_the_url_of_the_api_is_refused_without_repeating_it() {
    for url in [
        "https://user:secret@shop.example/v1",
        "https://shop.example/secret",
    ] {
        let exited = Program::with_key()
            .args(&["openapi", "--server", url])
            .run();
        exited.assert_refused(2, &["--server must be the URL of the API", "/v1"]);
        assert!(!format!("{exited:?}").contains("secret"), "{exited:?}");
    }
}
