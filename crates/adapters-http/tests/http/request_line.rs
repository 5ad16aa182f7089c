//! The log lines of requests.

use std::{
    num::NonZeroU32,
    sync::{Mutex, Once},
};

use animal_store_app::ports::{MockPetRepository, StoreFailure};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::service::{Service, any_key};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writes the log of this process to memory.
fn log_to_memory() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(|| LOG.make_writer())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only one");
    });
}

/// Asserts members of the line of the request with this id. `null`: the line has no such member.
#[track_caller]
fn assert_line(request_id: &str, expected: &Value) {
    let log = LOG.lock().expect("not poisoned").clone();
    let mut lines = log
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    let line: Value = lines
        .find(|line: &Value| line["request_id"] == request_id)
        .expect("a line of the request");
    for (name, value) in expected.as_object().expect("members") {
        assert_eq!(line[name], *value, "{name} in {line}");
    }
}

fn repository() -> MockPetRepository {
    let mut repository = MockPetRepository::new();
    // By itself, because no other expectation survives its panic.
    repository
        .expect_find()
        .withf(|id| id.get() == 72)
        .returning(|_| panic!("on purpose"));
    repository.expect_find().returning(|id| match id.get() {
        71 => Err(StoreFailure::Corrupt("status 7".into())),
        73 => Ok(None),
        _ => Err(StoreFailure::Overloaded),
    });
    repository
}

#[test]
fn a_log_line_explains_a_failure() {
    log_to_memory();
    let service = Service::start(repository(), any_key());
    let cause = "the store contains an invalid entry: status 7";
    for (id, status, expected) in [
        (
            "71",
            500,
            json!({ "level": "ERROR", "code": "internal_error", "cause": cause, "deprecated": true }),
        ),
        (
            "72",
            500,
            json!({ "level": "ERROR", "code": "internal_error" }),
        ),
        (
            "73",
            404,
            json!({ "level": "INFO", "code": "pet_not_found", "cause": null }),
        ),
        (
            "74",
            503,
            json!({ "level": "ERROR", "code": "overloaded", "shed": "storage_queue", "cause": null }),
        ),
    ] {
        let request = service
            .request("GET", &format!("/{id}"))
            .header("X-Request-Id", id)
            .header("User-Agent", "")
            .header("X-Forwarded-For", "192.0.2.1, 203.0.113.7");
        request.send().assert_status(status);
        assert_line(id, &expected);
        assert_line(
            id,
            &json!({
                "method": "GET", "path": format!("/v1/pets/{id}"), "status": status, "client": "203.0.113.7",
                "api_key": "key", "api_key_label": "label of key", "user_agent": null,
            }),
        );
    }
}

#[test]
fn the_line_of_a_refused_address_has_no_api_key() {
    log_to_memory();
    let service = Service::start_with(MockPetRepository::new(), any_key(), |settings| {
        settings.auth_failures = Some(NonZeroU32::MIN);
    });
    service.anonymous("GET", "").send().assert_status(401);
    let refused = service.request("GET", "").header("X-Request-Id", "91");
    refused.send().assert_status(429);
    assert_line(
        "91",
        &json!({ "level": "INFO", "code": "rate_limited", "client": "127.0.0.1", "api_key": null }),
    );
}
