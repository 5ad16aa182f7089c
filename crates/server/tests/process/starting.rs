//! Listeners: an empty address, ports in use, addresses of other machines.

use std::net::TcpListener;

use animal_store_test_servers::HttpClient;

use crate::program::{Program, TOKEN};

#[test]
fn an_empty_management_address_means_no_management_listener() {
    let mut running = Program::with_key().env("ANIMAL_STORE_MANAGEMENT__LISTEN", "").start();
    let event = running.wait_for_event("listening");

    assert_eq!(event.get("management"), None, "{event}");
    assert_eq!(HttpClient::new(running.address()).with_token(TOKEN).get("/live").status, 404);
}

#[test]
fn a_port_in_use_is_one_line_that_names_the_address_and_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (variable, key) in
        [("ANIMAL_STORE_HTTP__LISTEN", "http.listen"), ("ANIMAL_STORE_MANAGEMENT__LISTEN", "management.listen")]
    {
        // Without this file, the start fails, too: listeners are bound first.
        let no_file = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite");
        let no_file = no_file.env("ANIMAL_STORE_STORAGE__SQLITE__PATH", "/nowhere/animal-store.db");
        for program in [Program::new(), Program::with_key(), no_file] {
            let expected = format!("animal-store: cannot listen on {address} ({key}): address already in use: ");
            program.env(variable, &address).run().assert_error(1, &[&expected]);
        }
    }
}

#[test]
fn an_address_of_another_machine_is_one_line_that_names_its_key() {
    let exited = Program::with_key().env("ANIMAL_STORE_HTTP__LISTEN", "192.0.2.1:0").run();

    let reason = "no network interface of this machine has this address";
    exited.assert_error(1, &[&format!("animal-store: cannot listen on 192.0.2.1:0 (http.listen): {reason}")]);
}
