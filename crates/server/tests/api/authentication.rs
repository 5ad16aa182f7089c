//! The API key of every request under `/v1`. The unit tests of the token and of the header cover every form.

use crate::prelude::*;

#[test]
fn a_missing_malformed_or_unknown_key_is_a_401_in_every_operation() {
    let app = TestApp::start();
    for (authorization, code, reason) in [
        ("Basic dGVzdDp0ZXN0", "missing_api_key", ""),
        (
            "Bearer a b",
            "invalid_api_key",
            r#", error="invalid_request""#,
        ),
        (
            "Bearer Test-Token-1",
            "invalid_api_key",
            r#", error="invalid_token""#,
        ),
    ] {
        let challenge = format!(r#"Bearer realm="animal-store"{reason}"#);
        let send = |method, path| {
            let request = app.anonymous(method, path);
            let request = request.header("Authorization", authorization);
            request.json(PET).send()
        };
        let list = send("GET", "/v1/pets");
        for response in [&send("POST", "/v1/pets"), &send("GET", "/v1/pets/1"), &list] {
            response
                .assert_header("WWW-Authenticate", Some(&challenge))
                .assert_error(401, code);
        }
        send("HEAD", "/v1/pets").assert_head_of(&list);
    }
    assert_no_pet(&app);
}

#[test]
fn a_key_outside_of_authorization_is_ignored() {
    let app = TestApp::start();
    let list = || app.anonymous("GET", "/v1/pets");
    for request in [
        app.anonymous("GET", &format!("/v1/pets?access_token={TOKEN}")),
        list().header("X-Api-Key", TOKEN),
        list().header("Cookie", &format!("access_token={TOKEN}")),
        list().header("Proxy-Authorization", &format!("Bearer {TOKEN}")),
    ] {
        request.send().assert_error(401, "missing_api_key");
    }
}
