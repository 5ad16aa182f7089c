//! The scope that each operation needs.

use animal_store_app::{
    Scope,
    ports::{AddedPet, MockPetRepository},
    test_support::pet,
};
use animal_store_test_servers::Request;

use crate::service::{SHOP, Service, key_with};

fn service(scopes: &[Scope]) -> Service {
    let mut repository = MockPetRepository::new();
    repository
        .expect_list()
        .returning(|_, _, _| Ok(vec![pet(1)]));
    repository
        .expect_find()
        .returning(|id| Ok(Some(pet(id.get()))));
    repository.expect_add().returning(|_| {
        Ok(AddedPet {
            pet: pet(1),
            replayed: false,
        })
    });
    Service::start(repository, key_with(scopes))
}

#[track_caller]
fn assert_lacks(scope: &str, request: Request) {
    let response = request.send();
    let challenge =
        format!(r#"Bearer realm="animal-store", error="insufficient_scope", scope="{scope}""#);
    response
        .assert_status(403)
        .assert_header("WWW-Authenticate", Some(&challenge));
    let message = response.assert_error(403, "insufficient_scope");
    assert_eq!(
        message,
        format!("the API key does not have the `{scope}` scope")
    );
}

#[test]
fn a_read_needs_the_read_scope() {
    let writer = service(&[Scope::Write]);
    let reader = service(&[Scope::Read]);
    for path in ["", "/1"] {
        assert_lacks("read", writer.request("GET", path));
        writer.request("HEAD", path).send().assert_status(403);
        for method in ["GET", "HEAD"] {
            reader.request(method, path).send().assert_status(200);
        }
    }
}

#[test]
fn a_create_needs_the_write_scope() {
    assert_lacks("write", service(&[Scope::Read]).create());
    service(&[Scope::Write]).create().send().assert_status(201);
}

#[test]
fn a_403_is_readable_by_a_page_and_that_of_the_deprecated_operation_announces_its_deprecation() {
    let response = service(&[]).get("/1");
    response
        .assert_status(403)
        .assert_header("Access-Control-Allow-Origin", Some(SHOP));
    response.assert_header("Deprecation", Some("@1767225600"));
}

#[test]
fn the_route_and_the_method_come_before_the_scope() {
    let service = service(&[]);
    service.get("/1/nowhere").assert_status(404);
    service.request("PROPFIND", "").send().assert_status(405);
    service
        .request("POST", "/1")
        .json("{}")
        .send()
        .assert_status(405);
}

#[test]
fn the_scope_comes_before_every_other_check_of_the_request() {
    let service = service(&[]);
    assert_lacks(
        "write",
        service
            .request("POST", "")
            .header("Content-Type", "text/plain")
            .body("x"),
    );
    assert_lacks("write", service.request("POST", "").json("x".repeat(2000)));
    assert_lacks("write", service.request("POST", "").json("{"));
    assert_lacks("write", service.create().header("Idempotency-Key", "a b"));
    assert_lacks("read", service.request("GET", "?limit=0"));
    assert_lacks("read", service.request("GET", "/no-id"));
}

#[test]
fn the_scope_comes_before_the_removal_of_an_operation() {
    let removed = |scopes| {
        let repository = MockPetRepository::new();
        Service::start_with(repository, key_with(scopes), |settings| {
            settings.serves_get_pet = false;
        })
    };
    assert_lacks("read", removed(&[Scope::Write]).request("GET", "/1"));
    removed(&[Scope::Read]).get("/1").assert_error(410, "gone");
}
