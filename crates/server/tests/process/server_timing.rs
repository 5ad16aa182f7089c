//! The header `Server-Timing`.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, PgDatabase, Response};

use crate::program::{Program, TOKEN};

/// The names of the metrics in the header. Each has its duration in milliseconds.
fn metrics(response: &Response) -> Vec<&str> {
    let header = response.header("Server-Timing").unwrap_or_else(|| panic!("no header: {response:?}"));
    let parts = header.split(", ").map(|metric| metric.split_once(";dur=").unwrap_or_else(|| panic!("{header}")));
    parts
        .map(|(name, duration)| {
            let duration: f64 = duration.parse().unwrap_or_else(|_| panic!("{header}"));
            assert!((0.0..10_000.0).contains(&duration), "{header}");
            name
        })
        .collect()
}

fn list(address: SocketAddr, token: &str) -> Response {
    HttpClient::new(address).with_token(token).get("/v1/pets")
}

#[test]
fn responses_under_v1_have_the_times_of_their_parts() {
    let mut running = Program::with_key().env("ANIMAL_STORE_HTTP__SERVER_TIMING", "true").start();
    let address = running.address();

    assert_eq!(metrics(list(address, TOKEN).assert_status(200)), ["auth", "storage"]);
    assert_eq!(metrics(list(address, "unknown").assert_status(401)), ["auth"]);
    let client = HttpClient::new(address).with_token(TOKEN);
    assert_eq!(metrics(client.get("/v1/pets?limit=0").assert_status(400)), ["auth"]);
    assert_eq!(metrics(client.get("/v1/pets/1").assert_status(404)), ["auth", "storage"]);
    client.get("/openapi.json").assert_status(200).assert_header("Server-Timing", None);
    client.get("/nowhere").assert_status(404).assert_header("Server-Timing", None);
}

#[test]
fn with_postgresql_they_have_the_time_in_the_queue() {
    let database = PgDatabase::new();
    let program = Program::with_postgres(database.url());
    let mut running = program.env("ANIMAL_STORE_HTTP__SERVER_TIMING", "true").start();

    assert_eq!(metrics(list(running.address(), TOKEN).assert_status(200)), ["auth", "queue", "storage"]);
}

#[test]
fn by_default_no_response_has_the_header() {
    let mut running = Program::with_key().start();
    list(running.address(), TOKEN).assert_status(200).assert_header("Server-Timing", None);
}
