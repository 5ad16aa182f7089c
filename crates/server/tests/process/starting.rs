//! A start without its address.

use std::net::TcpListener;

use crate::program::Program;

#[test]
fn a_listener_that_cannot_be_opened_is_one_line_that_names_the_address_and_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let foreign = "192.0.2.1:0";
    for (variable, key, address, reason) in [
        ("ANIMAL_STORE_HTTP__LISTEN", "http.listen", &*taken, "address already in use: "),
        ("ANIMAL_STORE_MANAGEMENT__LISTEN", "management.listen", &taken, "address already in use: "),
        ("ANIMAL_STORE_HTTP__LISTEN", "http.listen", foreign, "no network interface of this machine has this address"),
    ] {
        // Without this file, the start fails, too: listeners are bound first.
        let program = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite");
        let program = program.env("ANIMAL_STORE_STORAGE__SQLITE__PATH", "/nowhere/animal-store.db");
        let expected = format!("animal-store: cannot listen on {address} ({key}): {reason}");
        program.env(variable, address).run().assert_error(1, &[&expected]);
    }
}
