//! Responses in gzip: large lists and static files, for clients that prefer it. The unit tests cover the preference.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::prelude::*;

#[track_caller]
fn get(app: &TestApp, path: &str, accepted: &str) -> Response {
    app.request("GET", path)
        .header("Accept-Encoding", accepted)
        .send()
}

/// Asserts the content coding and that the response declares its length.
#[track_caller]
fn assert_coding(response: &Response, coding: Option<&str>) {
    response
        .assert_status(200)
        .assert_header("Content-Encoding", coding);
    response.assert_header("Content-Length", Some(&response.body.len().to_string()));
    response.assert_header("Transfer-Encoding", None);
    assert_eq!(response.items("Vary"), ["accept-encoding"]);
}

#[test]
fn a_large_list_or_file_in_gzip_is_the_plain_one_with_its_headers() {
    let app = TestApp::start();
    for _ in 0..40 {
        app.create_pet();
    }
    for path in [
        "/v1/pets?limit=40",
        "/v1/pets?limit=30",
        "/openapi.json",
        "/docs/swagger-ui-bundle.js",
    ] {
        let [plain, gzip] = ["gzip;q=0", "br, gzip"].map(|accepted| get(&app, path, accepted));
        assert_coding(&plain, None);
        assert_coding(&gzip, Some("gzip"));
        let mut decompressed = Vec::new();
        GzDecoder::new(&gzip.body[..])
            .read_to_end(&mut decompressed)
            .expect("gzip");
        assert!(
            decompressed == plain.body,
            "{path}: {} bytes of another text",
            decompressed.len()
        );
        assert!(gzip.body.len() < plain.body.len(), "{path}");
        for name in ["Content-Type", "Link", "Cache-Control"] {
            gzip.assert_header(name, plain.header(name));
        }
        for (accepted, get) in [("gzip;q=0", plain), ("gzip", gzip)] {
            app.request("HEAD", path)
                .header("Accept-Encoding", accepted)
                .send()
                .assert_head_of(&get);
        }
    }
}

#[test]
fn a_single_pet_is_never_compressed() {
    let app = TestApp::start();
    let longest = format!(r#"{{"name":"{}","categoryId":1}}"#, "\u{1f415}".repeat(255));
    let create = app.request("POST", "/v1/pets").json(&longest);
    let created = create.header("Accept-Encoding", "gzip").send();
    assert!(created.assert_status(201).body.len() > 1024);
    created
        .assert_header("Content-Encoding", None)
        .assert_header("Vary", None);
    let read = get(&app, &format!("/v1/pets/{}", created.json()["id"]), "gzip");
    read.assert_header("Content-Encoding", None)
        .assert_header("Vary", None);
    assert_eq!(read.text(), created.text());
}
