//! How the program starts, or says why it cannot.

use std::net::TcpListener;

use crate::program::{Program, TOKEN, get};

#[test]
fn port_0_takes_a_free_port_and_tells_which() {
    let mut running = Program::with_key().start();
    let event = running.wait_for_event("listening");

    let [address, management] =
        ["address", "management"].map(|name| event[name].as_str().unwrap().parse::<std::net::SocketAddr>().unwrap());
    assert!(address.port() != 0 && management.port() != 0 && address != management, "{event}");
    assert!(get(address, "/v1/pets", TOKEN).starts_with("HTTP/1.1 200 "));
    assert!(get(management, "/ready", TOKEN).starts_with("HTTP/1.1 200 "));
}

#[test]
fn without_an_address_for_operators_there_is_none() {
    let mut running = Program::with_key().env("ANIMAL_STORE_MANAGEMENT__LISTEN", "").start();
    let event = running.wait_for_event("listening");

    assert_eq!(event.get("management"), None, "{event}");
    assert!(get(running.address(), "/live", TOKEN).starts_with("HTTP/1.1 404 "));
}

#[test]
fn without_tokens_only_a_loopback_address_is_served() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        for tokens in [None, Some(""), Some(" , ")] {
            let mut program = Program::new().args(&["--listen", address]);
            if let Some(tokens) = tokens {
                program = program.env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", tokens);
            }
            let ended = program.run();
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.join("\n").contains("ANIMAL_STORE_KEYS__MEMORY__TOKENS"), "{ended:?}");
        }
    }
}

#[test]
fn with_tokens_any_address_is_served() {
    let mut running = Program::with_key().args(&["--listen", "0.0.0.0:0"]).start();
    let port = running.address().port();

    assert!(get(([127, 0, 0, 1], port).into(), "/v1/pets", TOKEN).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_port_in_use_is_told_in_one_line_that_names_the_address() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for variable in ["ANIMAL_STORE_HTTP__LISTEN", "ANIMAL_STORE_MANAGEMENT__LISTEN"] {
        for program in [Program::new(), Program::with_key()] {
            let ended = program.env(variable, &address).run();

            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert_eq!(ended.stderr.len(), 1, "{ended:?}");
            assert!(ended.stderr[0].contains(&address), "{ended:?}");
        }
    }
}
