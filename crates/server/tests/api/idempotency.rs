//! `Idempotency-Key`: a create that is sent again adds no second animal, and is answered as it was the first time.

use serde_json::json;

use crate::{
    client::{Request, Response},
    test_app::{OTHER_TOKEN, TestApp},
};

const ANIMAL: &str = r#"{"name":"Rex","categoryId":5,"status":"sold"}"#;

/// A create with this key.
pub(crate) fn keyed(app: &TestApp, key: &str, body: impl AsRef<[u8]>) -> Request {
    app.request("POST", "/v1/pets").header("Idempotency-Key", key).json(body)
}

/// It added an animal.
#[track_caller]
pub(crate) fn assert_added(response: &Response) -> &Response {
    response.assert_status(201).assert_header("Idempotency-Replayed", None)
}

/// It is the first answer once more.
#[track_caller]
pub(crate) fn assert_replay(response: &Response, first: &Response) {
    response.assert_status(201).assert_header("Idempotency-Replayed", Some("true"));
    assert_eq!(response.text(), first.text());
    for name in ["Location", "Content-Type", "Content-Length", "Cache-Control"] {
        response.assert_header(name, first.header(name));
    }
}

#[test]
fn a_create_sent_again_is_answered_as_it_was_and_adds_nothing() {
    let app = TestApp::start();

    let first = keyed(&app, "order-1", ANIMAL).send();
    let between = app.create(ANIMAL);
    let replays = [(); 3].map(|()| keyed(&app, "order-1", ANIMAL).send());

    assert_added(&first);
    for replay in &replays {
        assert_replay(replay, &first);
    }
    assert_eq!(app.get("/v1/pets").json(), json!([first.json(), between]));
}

#[test]
fn another_key_is_another_animal() {
    let app = TestApp::start();

    // The last two differ by their last character.
    let keys = ["a", "A", "a,b", "=a", &"x".repeat(254), &"x".repeat(255), &format!("{}y", "x".repeat(254))];
    let added = keys.map(|key| assert_added(&keyed(&app, key, ANIMAL).send()).json());

    assert_eq!(app.get("/v1/pets").json(), json!(added));
}

#[test]
fn bodies_that_say_the_same_of_an_animal_are_the_same_create() {
    let app = TestApp::start();
    let first = keyed(&app, "order-1", ANIMAL).send();
    assert_added(&first);

    for body in [
        " { \"name\" : \"Rex\" ,\r\n\t\"categoryId\" : 5 , \"status\" : \"sold\" } \n",
        r#"{"status":"sold","categoryId":5,"name":"Rex"}"#,
        r#"{"name":"Rex","categoryId":5,"status":"sold","colour":"brown","Name":"Tom"}"#,
        r#"{"id":0,"name":"Rex","categoryId":5,"status":"sold"}"#,
        r#"{"name":"Rex","categoryId":5.0,"status":"sold"}"#,
        r#"{"name":"Rex","categoryId":5e0,"status":"sold"}"#,
        r#"{"name":"Rex","categoryId":0.5E+1,"status":"sold"}"#,
        r#"{"name":"\u0052e\u0078","categoryId":5,"status":"s\u006fld"}"#,
        r#"{"n\u0061me":"Rex","\u0063ategoryId":5,"status":"sold"}"#,
        first.text(),
    ] {
        assert_replay(&keyed(&app, "order-1", body).send(), &first);
    }
    let elsewhere = app.request("POST", "/v1/pets?again=1").header("idempotency-key", "order-1");
    let elsewhere = elsewhere.header("Content-Type", "application/vnd.shop+json; charset=utf-8").chunked(ANIMAL);
    assert_replay(&elsewhere.send(), &first);

    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn the_same_key_with_another_animal_is_a_422_that_adds_nothing() {
    let app = TestApp::start();
    // Whole numbers that would be one as floating point; letters that are one as people read them.
    let big = r#"{"name":"Rex","categoryId":9007199254740993}"#;
    let composed = "{\"name\":\"Ren\u{e9}\",\"categoryId\":5}";
    let cases: [(&str, &[&str]); 4] = [
        (
            ANIMAL,
            &[
                r#"{"name":"Rex","categoryId":5}"#,
                r#"{"name":"Rex","categoryId":5,"status":"pending"}"#,
                r#"{"name":"rex","categoryId":5,"status":"sold"}"#,
                r#"{"name":"Rex ","categoryId":5,"status":"sold"}"#,
                r#"{"name":"Rex","categoryId":-5,"status":"sold"}"#,
                r#"{"name":"Rex","categoryId":6,"status":"sold"}"#,
            ],
        ),
        (r#"{"name":"Rex","categoryId":5}"#, &[ANIMAL]),
        (big, &[r#"{"name":"Rex","categoryId":9007199254740992}"#, r#"{"name":"Rex","categoryId":9007199254740994}"#]),
        (composed, &["{\"name\":\"Rene\u{301}\",\"categoryId\":5}", r#"{"name":"Rene\u0301","categoryId":5}"#]),
    ];

    let firsts = [0, 1, 2, 3].map(|number| {
        let (animal, others) = cases[number];
        let key = format!("order-{number}");
        let first = keyed(&app, &key, animal).send();
        assert_added(&first);
        for other in others {
            let response = keyed(&app, &key, other).send();
            response.assert_header("Idempotency-Replayed", None).assert_header("Location", None);
            response.assert_header("Retry-After", None).assert_error(422, "idempotency_mismatch");
        }
        // Its own is still known.
        assert_replay(&keyed(&app, &key, animal).send(), &first);
        first.json()
    });

    assert_eq!(app.get("/v1/pets").json(), json!(firsts));
}

#[test]
fn every_api_key_has_keys_of_its_own() {
    let app = TestApp::start();
    let other = || {
        let request = app.anonymous("POST", "/v1/pets").header("Authorization", &format!("Bearer {OTHER_TOKEN}"));
        request.header("Idempotency-Key", "order-1")
    };
    let mine = keyed(&app, "order-1", ANIMAL).send();
    assert_added(&mine);

    let theirs = other().json(r#"{"name":"Tom","categoryId":6}"#).send();

    assert_added(&theirs);
    assert_replay(&keyed(&app, "order-1", ANIMAL).send(), &mine);
    assert_replay(&other().json(r#"{"name":"Tom","categoryId":6}"#).send(), &theirs);
    other().json(ANIMAL).send().assert_error(422, "idempotency_mismatch");
    assert_eq!(app.get("/v1/pets").json(), json!([mine.json(), theirs.json()]));
}

#[test]
fn a_key_is_free_after_every_answer_but_a_201() {
    let app = TestApp::start();
    let with_key = |request: Request| request.header("Idempotency-Key", "order-1");
    let post = || with_key(app.request("POST", "/v1/pets"));
    let anonymous = || with_key(app.anonymous("POST", "/v1/pets"));
    for (request, status) in [
        (post().json("{"), 400),
        (post().json("{}"), 400),
        (post(), 400),
        (post().json(r#"{"name":"Rex","categoryId":5,"status":null}"#), 400),
        (post().header("Idempotency-Key", "order-1").json(ANIMAL), 400),
        (post().json(" ".repeat(16_385)), 413),
        (post().body(ANIMAL), 415),
        (post().header("Content-Encoding", "gzip").json(ANIMAL), 415),
        (anonymous().json(ANIMAL), 401),
        (anonymous().header("Authorization", "Bearer unknown").json(ANIMAL), 401),
        (with_key(app.request("PUT", "/v1/pets")).json(ANIMAL), 405),
        (with_key(app.request("POST", "/v1/pets/1")).json(ANIMAL), 405),
        (with_key(app.request("POST", "/v1/nowhere")).json(ANIMAL), 404),
    ] {
        request.send().assert_status(status).assert_header("Idempotency-Replayed", None);
    }

    let first = keyed(&app, "order-1", r#"{"name":"Tom","categoryId":6}"#).send();

    assert_added(&first);
    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn where_nothing_is_added_the_header_is_ignored() {
    let app = TestApp::start();
    let first = keyed(&app, "order-1", ANIMAL).send();
    let path = format!("/v1/{}", first.header("Location").expect("a Location"));

    for key in ["order-1", "", "\"", "a b"] {
        for path in ["/v1/pets", &path] {
            let response = app.request("GET", path).header("Idempotency-Key", key).send();
            response.assert_status(200).assert_header("Idempotency-Replayed", None);
        }
    }
}
