//! `Idempotency-Key`: a repeated create returns the pet of the first one and creates no second pet.

use crate::prelude::*;

fn keyed(app: &TestApp, body: &str) -> Request {
    app.request("POST", "/v1/pets")
        .header("Idempotency-Key", "order-1")
        .json(body)
}

#[test]
fn a_repeated_create_has_the_same_response() {
    let app = TestApp::start();

    let first = keyed(&app, PET).send();
    first
        .assert_status(201)
        .assert_header("Idempotency-Replayed", None);
    let between = app.create(PET);
    let same = r#" {"categoryId":7e0,"name":"\u0052ex","colour":"brown"}"#;
    let replay = keyed(&app, same).send();

    replay
        .assert_status(201)
        .assert_header("Idempotency-Replayed", Some("true"));
    assert_eq!(replay.text(), first.text());
    replay.assert_header("Location", first.header("Location"));
    assert_eq!(app.get("/v1/pets").json(), json!([first.json(), between]));
}
