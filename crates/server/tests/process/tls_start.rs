//! The start with TLS, and without it.

use std::fs;

use crate::{
    program::{Line, Program},
    quickstart, tls,
};

#[test]
fn the_commands_of_the_quickstart_work_with_tls() {
    let (program, certificates) = tls::with_tls(Program::with_file());
    let mut running = program.print_key().start();
    for expected in [format!("listens on https://{}.", running.address()), "--cacert FILE".to_owned()] {
        running.wait_for(|line| match line {
            Line::Err(text) => text.contains(&expected).then_some(()),
            Line::Out(_) => None,
        });
    }
    let authority = certificates.authority.display();
    let [add, list] = quickstart::commands(&mut running).map(|command| command + &format!(" --cacert '{authority}'"));
    quickstart::assert_both_work(&add, &list);
}

#[test]
fn the_warning_about_a_missing_certificate_names_the_keys_for_tls_and_for_a_proxy() {
    let program = Program::with_key().env("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0");
    let warnings = |program: Program| {
        let mut running = program.start();
        running.address();
        let events = running.terminate().events();
        events.into_iter().filter(|event| event["level"] == "WARN").collect::<Vec<_>>()
    };
    let found = warnings(program);
    let expected = |event: &serde_json::Value| {
        let message = event["message"].as_str().unwrap_or_default();
        message.contains("http.tls.cert_file") && message.contains("http.trusted_proxies")
    };
    assert_eq!(found.iter().filter(|event| expected(event)).count(), 1, "{found:?}");

    let (program, _) = tls::program();
    let found = warnings(program.env("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0"));
    assert!(!found.iter().any(expected), "{found:?}");
}

#[test]
fn a_key_of_another_certificate_prevents_the_start_and_is_found_by_check_config() {
    for arguments in [&["check-config"][..], &[]] {
        let (program, certificates) = tls::program();
        fs::copy(&certificates.client_key, &certificates.server_key).expect("a file");
        let exited = program.args(arguments).run();
        let error = "server-key.pem is not the private key of server.pem";
        assert_eq!(exited.code, Some(2), "{exited:?}");
        assert!(exited.output().contains(error) && exited.output().contains("http.tls.key_file"), "{exited:?}");
    }
}
