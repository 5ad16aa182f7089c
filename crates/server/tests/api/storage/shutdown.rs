//! The end of the service while it creates a pet.

use std::net::TcpStream;

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    raw_requests::{begin_create, get},
    test_app::TestApp,
};

#[test]
fn a_create_in_flight_is_completed_its_connection_closed_and_no_request_behind_it_carried_out() {
    let app = TestApp::start();
    let (mut connection, body) = begin_create(&app);
    let (left, right) = body.split_at(10);
    connection.send(left);

    app.begin_shutdown();
    wait_until(|| TcpStream::connect_timeout(&app.address, RawConnection::TIMEOUT).is_err());
    app.management("GET", "/ready").send().assert_status(503);
    connection.send(right.to_owned() + &get("/v1/pets"));

    let response = connection.response();
    assert_eq!(response.assert_status(201).json()["name"], "Rex");
    assert!(response.closes(), "{response:?}");
    connection.assert_closed();
    app.shut_down().expect("a graceful end");
}
