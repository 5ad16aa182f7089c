//! What pages of other origins may read when the service fails or refuses.

use animal_store_adapters_http::AllowedOrigins;
use animal_store_app::{
    Scope,
    ports::{AddPetError, ApiKeyDirectoryError, MockApiKeyDirectory, MockPetRepository, StorageError},
};
use ureq::{
    Body,
    http::{HeaderValue, Response},
};

use crate::served::{Served, any_key, key_with};

const SHOP: &str = "https://shop.example";
const FOREIGN: &str = "https://evil.example";

fn served(repository: MockPetRepository, directory: MockApiKeyDirectory) -> Served {
    let origins = AllowedOrigins::These(vec![SHOP.parse().expect("an origin")]);
    Served::with_origins(origins, repository, directory)
}

#[track_caller]
fn assert_answer(response: &Response<Body>, status: u16, allowed: Option<&str>) {
    assert_eq!(response.status(), status, "{response:?}");
    let headers = response.headers();
    assert_eq!(headers.get("access-control-allow-origin").map(HeaderValue::as_bytes), allowed.map(str::as_bytes));
    assert_eq!(headers.get_all("vary").iter().count(), 1, "{response:?}");
    let varies = headers["vary"].to_str().expect("ASCII");
    assert!(varies.split(", ").any(|name| name == "Origin"), "{varies}");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(headers.contains_key("x-request-id"), "{response:?}");
    assert_eq!(headers["content-type"], "application/json");
}

/// The status, and of what a page may read also that it may read why and when to try again.
#[track_caller]
fn assert_readable_by_the_allowed_one(served: &Served, path: &str, status: u16) {
    let response = served.get_with(path, &[("Origin", SHOP)]);
    assert_answer(&response, status, Some(SHOP));
    let exposed = response.headers()["access-control-expose-headers"].to_str().expect("ASCII");
    for name in ["retry-after", "x-request-id", "www-authenticate"] {
        assert!(exposed.split(", ").any(|item| item == name), "{exposed}");
    }
    assert_answer(&served.get_with(path, &[("Origin", FOREIGN)]), status, None);
    assert_answer(&served.get_with(path, &[]), status, None);
}

#[test]
fn a_panic_is_a_500_that_an_allowed_page_may_read() {
    let mut repository = MockPetRepository::new();
    repository.expect_find().returning(|_| panic!("on purpose"));

    assert_readable_by_the_allowed_one(&served(repository, any_key()), "/1", 500);
}

#[test]
fn a_storage_that_is_away_or_holds_nonsense_is_an_answer_that_an_allowed_page_may_read() {
    let mut repository = MockPetRepository::new();
    repository.expect_find().returning(|_| Err(StorageError::Corrupt("nonsense".into())));
    repository.expect_list().returning(|_, _, _| Err(StorageError::Timeout));
    let served = served(repository, any_key());

    assert_readable_by_the_allowed_one(&served, "/1", 500);
    assert_readable_by_the_allowed_one(&served, "", 503);
}

#[test]
fn a_directory_that_is_away_is_a_503_that_an_allowed_page_may_read_and_a_preflight_does_not_need_it() {
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(|_| Err(ApiKeyDirectoryError::Timeout));
    let served = served(MockPetRepository::new(), directory);

    assert_readable_by_the_allowed_one(&served, "", 503);
    let asks = [("Origin", SHOP), ("Access-Control-Request-Method", "GET")];
    let response = served.send_with("OPTIONS", "", &asks);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["access-control-allow-origin"], SHOP);
}

#[test]
fn a_key_without_its_scope_is_a_403_that_an_allowed_page_may_read() {
    let served = served(MockPetRepository::new(), key_with(&[Scope::Write]));

    assert_readable_by_the_allowed_one(&served, "", 403);
    assert_readable_by_the_allowed_one(&served, "/1", 403);
}

#[test]
fn a_create_that_was_not_carried_out_is_an_answer_that_an_allowed_page_may_read() {
    for (failure, status) in [
        (|| AddPetError::IdempotencyConflict, 409),
        (|| AddPetError::IdempotencyMismatch, 422),
        (|| AddPetError::OutcomeUnknown("gone".into()), 503),
    ] as [(fn() -> AddPetError, u16); 3]
    {
        let mut repository = MockPetRepository::new();
        repository.expect_add().returning(move |_| Err(failure()));
        let served = served(repository, any_key());

        for (origin, allowed) in [(SHOP, Some(SHOP)), (FOREIGN, None)] {
            let response = served.post_with(&[("Idempotency-Key", "order-1"), ("Origin", origin)]);
            assert_answer(&response, status, allowed);
        }
    }
}
