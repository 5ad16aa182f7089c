//! The responses to clients when a port fails.

use std::num::NonZeroU32;

use animal_store_adapters_http::{AuthFailureLimiter, Limits, reloaded};
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
    let change = |limits: &mut Limits| {
        limits.auth_failures = reloaded(Some(AuthFailureLimiter::new(NonZeroU32::MIN)));
    };
    Service::start_with(MockPetRepository::new(), directory, change)
}

#[track_caller]
fn assert_failure(
    response: &Response,
    retry_after: Option<&str>,
    status: u16,
    code: &str,
    message: &str,
) {
    assert_eq!(response.assert_error(status, code), message);
    response
        .assert_header("Retry-After", retry_after)
        .assert_header("Cache-Control", Some("no-store"));
    response.assert_header("X-Content-Type-Options", Some("nosniff"));
    response.assert_header("Access-Control-Allow-Origin", Some(SHOP));
    assert!(response.header("X-Request-Id").is_some(), "{response:?}");
}

#[test]
fn a_failure_of_the_storage_has_the_code_of_its_cause_and_only_an_overload_is_counted_as_shed() {
    let unavailable = "the service is unavailable; retry later";
    let overloaded = "the service is overloaded; retry later";
    let unknown = "the pet may have been added; check before you retry without an Idempotency-Key";
    let conflict = "an earlier request with this Idempotency-Key is in flight; retry later";
    let mismatch = "this Idempotency-Key was used for another pet";
    for (error, retry_after, status, code, message) in [
        (
            || StoreFailure::Unavailable(SECRET.into()).into(),
            Some("1"),
            503,
            "unavailable",
            unavailable,
        ),
        (
            || StoreFailure::Timeout.into(),
            Some("1"),
            503,
            "unavailable",
            unavailable,
        ),
        (
            || StoreFailure::Overloaded.into(),
            Some("1"),
            503,
            "overloaded",
            overloaded,
        ),
        (
            || StoreFailure::Corrupt(SECRET.into()).into(),
            None,
            500,
            "internal_error",
            "internal error",
        ),
        (
            || StoreFailure::OutcomeUnknown(SECRET.into()).into(),
            None,
            503,
            "outcome_unknown",
            unknown,
        ),
        (
            || AddPetError::IdempotencyConflict,
            Some("1"),
            409,
            "idempotency_conflict",
            conflict,
        ),
        (
            || AddPetError::IdempotencyMismatch,
            None,
            422,
            "idempotency_mismatch",
            mismatch,
        ),
    ]
        as [(fn() -> AddPetError, _, _, _, _); 7]
    {
        let failure = move || match error() {
            AddPetError::Store(failure) => Some(failure),
            _ => None,
        };
        let service = with_repository(|repository| {
            repository.expect_add().returning(move |_| Err(error()));
            repository
                .expect_list()
                .returning(move |_, _, _| failure().map_or(Ok(vec![]), Err));
            repository
                .expect_find()
                .returning(move |_| failure().map_or(Ok(None), Err));
        });

        let created = service.create().header("Idempotency-Key", "order-1").send();
        assert_failure(&created, retry_after, status, code, message);
        if failure().is_some() {
            assert_failure(&service.get(""), retry_after, status, code, message);
            assert_failure(&service.get("/1"), retry_after, status, code, message);
        }
        let shed = if code == "overloaded" { 3 } else { 0 };
        service.assert_metrics(&[&format!(
            "http_requests_shed_total{{reason=\"storage_queue\"}} {shed}"
        )]);
    }
}

#[test]
fn a_failure_of_the_directory_is_never_a_401_and_its_refusals_are_counted_as_shed() {
    let (unavailable, overloaded) = (
        "the service is unavailable; retry later",
        "the service is overloaded; retry later",
    );
    for (error, retry_after, status, code, message, shed) in [
        (
            || StoreFailure::Unavailable(SECRET.into()),
            Some("1"),
            503,
            "unavailable",
            unavailable,
            0,
        ),
        (
            || StoreFailure::Timeout,
            Some("1"),
            503,
            "unavailable",
            unavailable,
            0,
        ),
        (
            || StoreFailure::Overloaded,
            Some("1"),
            503,
            "overloaded",
            overloaded,
            3,
        ),
        (
            || StoreFailure::Corrupt(SECRET.into()),
            None,
            500,
            "internal_error",
            "internal error",
            0,
        ),
    ]
        as [(fn() -> StoreFailure, _, _, _, _, u32); 4]
    {
        let service = with_failing_directory(error);
        for _ in 0..3 {
            assert_failure(&service.get(""), retry_after, status, code, message);
        }
        service.assert_metrics(&[&format!(
            "http_requests_shed_total{{reason=\"key_lookups\"}} {shed}"
        )]);
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

    assert_failure(
        &service.get("/1"),
        None,
        500,
        "internal_error",
        "internal error",
    );
    service.assert_metrics(&[
        r#"http_requests_total{operation="getPet",method="GET",status="500"} 1"#,
        r#"http_request_duration_seconds_count{operation="getPet"} 1"#,
    ]);
    service.get("").assert_status(200);
}
