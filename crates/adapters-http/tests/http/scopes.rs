//! What a key may do.

use animal_store_app::{
    Scope,
    ports::{AddedPet, MockPetRepository},
    test_support::pet,
};
use serde_json::{Value, json};
use ureq::{Body, http::Response};

use crate::served::{Served, key_with};

const JSON: &str = "application/json";
const ANIMAL: &str = r#"{"name":"Rex","categoryId":1}"#;

fn served(scopes: &[Scope]) -> Served {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Ok(vec![pet(1)]));
    repository.expect_find().returning(|id| Ok(Some(pet(id.get()))));
    repository.expect_add().returning(|_| Ok(AddedPet { pet: pet(1), replayed: false }));
    Served::with(repository, key_with(scopes))
}

#[track_caller]
fn assert_lacks(scope: &str, mut response: Response<Body>) {
    assert_eq!(response.status(), 403);
    let challenge = format!(r#"Bearer realm="animal-store", error="insufficient_scope", scope="{scope}""#);
    assert_eq!(response.headers()["www-authenticate"], challenge.as_str());
    let body: Value = serde_json::from_str(&response.body_mut().read_to_string().expect("a body")).expect("JSON");
    let message = format!("the API key may not {scope}: it lacks the scope {scope}");
    assert_eq!(body, json!({ "code": "insufficient_scope", "message": message, "status": 403 }));
}

#[test]
fn reading_needs_the_scope_read() {
    let writer = served(&[Scope::Write]);
    assert_lacks("read", writer.get(""));
    assert_lacks("read", writer.get("/1"));
    assert_eq!(writer.post().status(), 201);
}

#[test]
fn writing_needs_the_scope_write() {
    let reader = served(&[Scope::Read]);
    assert_lacks("write", reader.post());
    assert_eq!(reader.get("").status(), 200);
    assert_eq!(reader.get("/1").status(), 200);
}

#[test]
fn a_key_without_scopes_may_do_nothing() {
    let nobody = served(&[]);
    assert_lacks("read", nobody.get(""));
    assert_lacks("read", nobody.get("/1"));
    assert_lacks("write", nobody.post());
}

#[test]
fn head_needs_what_get_needs() {
    for path in ["", "/1"] {
        assert_eq!(served(&[Scope::Write]).send("HEAD", path, JSON, "").status(), 403, "{path}");
        assert_eq!(served(&[Scope::Read]).send("HEAD", path, JSON, "").status(), 200, "{path}");
    }
}

#[test]
fn a_403_of_the_deprecated_operation_says_that_it_is_deprecated() {
    let response = served(&[]).get("/1");
    assert_eq!(response.headers()["deprecation"], "@1767225600");
}

#[test]
fn the_route_and_the_method_come_before_the_scope() {
    let nobody = served(&[]);
    assert_eq!(nobody.get("/1/nowhere").status(), 404);
    assert_eq!(nobody.send("DELETE", "", JSON, "").status(), 405);
    assert_eq!(nobody.send("POST", "/1", JSON, ANIMAL).status(), 405);
}

#[test]
fn the_scope_comes_before_whatever_is_wrong_with_the_request() {
    let nobody = served(&[]);
    assert_lacks("write", nobody.send("POST", "", "text/plain", ANIMAL));
    assert_lacks("write", nobody.send("POST", "", JSON, &"x".repeat(2000)));
    assert_lacks("write", nobody.send("POST", "", JSON, "{"));
    assert_lacks("write", nobody.post_with(&[("Idempotency-Key", "a b")]));
    assert_lacks("read", nobody.get("?limit=0"));
    assert_lacks("read", nobody.get("/no-id"));
}
