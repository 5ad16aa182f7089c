//! The responses to clients when a port fails.

use std::num::NonZeroU32;

use animal_store_app::{
    ports::{AddPetError, MockApiKeyDirectory, MockPetRepository, StoreFailure},
    test_support::pet,
};
use animal_store_test_servers::Response;

use crate::service::{SHOP, Service, any_key};

const SECRET: &str = "password of the database";

fn with_repository(expect: impl FnOnce(&mut MockPetRepository)) -> Service {
    let mut repository = MockPetRepository::new();
    expect(&mut repository);
    Service::start(repository, any_key())
}

fn with_failing_directory(error: fn() -> StoreFailure) -> Service {
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(move |_| Err(error()));
    // With a second failure, the address of the client would get 429.
    Service::start_with(MockPetRepository::new(), directory, |settings| {
        settings.auth_failures = Some(NonZeroU32::MIN);
    })
}

/// Status and code of the response to a failure.
type Failure = (u16, &'static str);

const UNAVAILABLE: Failure = (503, "unavailable");
const OVERLOADED: Failure = (503, "overloaded");
const INTERNAL: Failure = (500, "internal_error");
const UNKNOWN: Failure = (503, "outcome_unknown");

/// Failures of a store, with the responses to them.
const STORE_FAILURES: [(fn() -> StoreFailure, Failure); 5] = [
    (|| StoreFailure::Unavailable(SECRET.into()), UNAVAILABLE),
    (|| StoreFailure::Timeout, UNAVAILABLE),
    (|| StoreFailure::Overloaded, OVERLOADED),
    (|| StoreFailure::Corrupt(SECRET.into()), INTERNAL),
    (|| StoreFailure::OutcomeUnknown(SECRET.into()), UNKNOWN),
];

#[track_caller]
fn assert_failure(response: &Response, (status, code): Failure) {
    let message = response.assert_error(status, code);
    assert!(!message.contains(SECRET), "{message}");
    response
        .assert_header("Cache-Control", Some("no-store"))
        .assert_header("X-Content-Type-Options", Some("nosniff"))
        .assert_header("Access-Control-Allow-Origin", Some(SHOP));
    assert!(response.header("X-Request-Id").is_some(), "{response:?}");
}

/// Asserts how many of three refusals count for this limit.
#[track_caller]
fn assert_shed(service: &Service, limit: &str, failure: Failure) {
    let shed = if failure == OVERLOADED { 3 } else { 0 };
    let series = format!("http_requests_shed_total{{reason=\"{limit}\"}} {shed}");
    service.assert_metrics(&[&series]);
}

#[test]
fn a_failure_of_the_storage_has_the_code_of_its_cause_and_only_an_overload_is_counted_as_shed() {
    for (error, failure) in STORE_FAILURES {
        let service = with_repository(|repository| {
            repository
                .expect_add()
                .returning(move |_| Err(error().into()));
            repository
                .expect_list()
                .returning(move |_, _, _| Err(error()));
            repository.expect_find().returning(move |_| Err(error()));
        });
        assert_failure(&service.create().send(), failure);
        assert_failure(&service.get(""), failure);
        assert_failure(&service.get("/1"), failure);
        assert_shed(&service, "storage_queue", failure);
    }
}

#[test]
fn a_failure_because_of_an_idempotency_key_has_its_code() {
    for (error, failure) in [
        (
            (|| AddPetError::IdempotencyConflict) as fn() -> AddPetError,
            (409, "idempotency_conflict"),
        ),
        (
            || AddPetError::IdempotencyMismatch,
            (422, "idempotency_mismatch"),
        ),
    ] {
        let service = with_repository(|repository| {
            repository.expect_add().returning(move |_| Err(error()));
        });
        let created = service.create().header("Idempotency-Key", "order-1").send();
        assert_failure(&created, failure);
    }
}

#[test]
fn a_failure_of_the_directory_is_never_a_401_and_its_refusals_are_counted_as_shed() {
    // A look-up has no unknown outcome.
    for (error, failure) in &STORE_FAILURES[..4] {
        let service = with_failing_directory(*error);
        for _ in 0..3 {
            assert_failure(&service.get(""), *failure);
        }
        assert_shed(&service, "key_lookups", *failure);
    }
}

#[test]
fn a_panic_is_a_500_which_is_counted_and_the_service_goes_on() {
    let service = with_repository(|repository| {
        repository
            .expect_find()
            .once()
            .returning(|_| panic!("{SECRET}"));
        repository
            .expect_list()
            .returning(|_, _, _| Ok(vec![pet(1)]));
    });

    assert_failure(&service.get("/1"), INTERNAL);
    service.assert_metrics(&[
        r#"http_requests_total{operation="getPet",method="GET",status="500"} 1"#,
        r#"http_request_duration_seconds_count{operation="getPet"} 1"#,
    ]);
    service.get("").assert_status(200);
}
