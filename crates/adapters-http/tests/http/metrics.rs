//! Metrics of failures that only a mock of a port causes.

use animal_store_app::ports::{AddPetError, MockPetRepository, StoreFailure};

use crate::service::{Service, any_key};

#[test]
fn requests_that_the_storage_refuses_because_of_its_queue_are_counted_as_shed() {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Err(StoreFailure::Overloaded));
    repository.expect_add().returning(|_| Err(StoreFailure::Overloaded.into()));
    let service = Service::start(repository, any_key());

    service.get("").assert_status(503);
    service.create().send().assert_status(503);

    service.assert_metrics(&[
        r#"http_requests_shed_total{reason="storage_queue"} 2"#,
        r#"http_requests_shed_total{reason="in_flight"} 0"#,
        r#"http_requests_total{operation="listPets",method="GET",status="503"} 1"#,
    ]);
}

#[test]
fn a_failure_that_is_no_overload_is_not_shed() {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Err(StoreFailure::Timeout));
    repository.expect_add().returning(|_| Err(AddPetError::IdempotencyConflict));
    let service = Service::start(repository, any_key());

    service.get("").assert_status(503);
    service.create().header("Idempotency-Key", "order-1").send().assert_status(409);

    service.assert_metrics(&[r#"http_requests_shed_total{reason="storage_queue"} 0"#]);
}
