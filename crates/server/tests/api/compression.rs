//! Responses in gzip: large lists and static files, for clients that prefer it.

use std::io::Read;

use animal_store_test_servers::Response;
use flate2::read::GzDecoder;

use crate::{headers::requests_of_every_status, test_app::TestApp};

const LONGEST_NAME: usize = 255;

const LIST: &str = "/v1/pets?limit=100";

#[track_caller]
fn decompressed(response: &Response) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(&response.body[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

/// Asserts the content coding and that the response declares its length.
#[track_caller]
fn assert_coding(response: &Response, coding: Option<&str>) {
    response.assert_status(200).assert_header("Content-Encoding", coding);
    response.assert_header("Content-Length", Some(&response.body.len().to_string()));
    response.assert_header("Transfer-Encoding", None);
    assert_eq!(response.items("Vary"), ["accept-encoding"]);
}

/// Asserts that a response is the plain one in gzip.
#[track_caller]
fn assert_gzip_of(response: &Response, plain: &Response) {
    assert_coding(plain, None);
    assert_coding(response, Some("gzip"));
    assert!(response.body.len() < plain.body.len(), "{} instead of {}", response.body.len(), plain.body.len());
    assert!(decompressed(response) == plain.body, "{} bytes of another text", response.body.len());
    for name in ["Content-Type", "Link", "Cache-Control", "Content-Security-Policy"] {
        response.assert_header(name, plain.header(name));
    }
}

#[track_caller]
fn get(app: &TestApp, path: &str, accepted: &[&str]) -> Response {
    let request = app.request("GET", path);
    accepted.iter().fold(request, |request, value| request.header("Accept-Encoding", value)).send()
}

#[test]
fn a_compressed_list_is_the_plain_one_with_its_link() {
    let app = TestApp::start();
    app.create_pets(90);

    for (path, has_link) in [(LIST, false), ("/v1/pets?limit=30", true), ("/v1/pets?limit=30&status=sold", false)] {
        let plain = get(&app, path, &[]);
        assert_eq!(plain.header("Link").is_some(), has_link, "{plain:?}");
        plain.assert_header("Content-Type", Some("application/json"));
        assert_gzip_of(&get(&app, path, &["gzip"]), &plain);
    }
}

#[test]
fn a_list_is_compressed_if_the_client_prefers_gzip() {
    let app = TestApp::start();
    app.create_pets(40);

    // Values of Accept-Encoding, separated by bars.
    let gzip = "gzip | GZIP | gZip;Q=1 | gzip;q=1.0 | gzip;q=0.001 | gzip ; q=0.5 | gzip, deflate, br, zstd \
        | br;q=1.0, gzip;q=0.8, *;q=0.1 | identity;q=0.5, gzip;q=0.6 | gzip;q=0.6,identity;q=0.5 | gzip, identity \
        | identity;q=0, gzip | identity;q=0, gzip;q=0.1 | , ,gzip,,";
    let plain = " | identity | * | *;q=0.5 | br | deflate, br, zstd, compress | gzip;q=0 | gzip;q=0.000 | gzip;q=0, * \
        | gzip;q=0.5, identity;q=0.8 | gzipped | xgzip, gzi, x-unknown | gzip;q=2 | gzip;q=-1 | gzip;q=x | gzip q=1 \
        | \"gzip\" | identity;q=0, gzip;q=0";
    for (values, coding) in [(gzip, Some("gzip")), (plain, None)] {
        for value in values.split(" | ") {
            assert_coding(&get(&app, LIST, &[value.trim()]), coding);
        }
    }
    assert_coding(&get(&app, LIST, &["br", "gzip"]), Some("gzip"));
    assert_coding(&get(&app, LIST, &["gzip", "br;q=0"]), Some("gzip"));
    assert_coding(&get(&app, LIST, &["gzip;q=0.5", "identity;q=0.8"]), None);
    assert_coding(&get(&app, LIST, &[]), None);
}

#[test]
fn head_is_get_without_its_body_in_both_codings() {
    let app = TestApp::start();
    app.create_pets(40);

    let pet = &*format!("/v1/pets/{}", app.create_pet(None));
    for path in [LIST, "/v1/pets?limit=1", "/v1/pets?limit=0", pet, "/v1/pets/0", "/openapi.json", "/docs"] {
        for accepted in ["gzip", "gzip;q=0"] {
            let head = app.request("HEAD", path).header("Accept-Encoding", accepted).send();
            head.assert_head_of(&get(&app, path, &[accepted]));
        }
    }
}

#[test]
fn a_single_pet_is_never_compressed_nor_is_an_error() {
    let app = TestApp::start();
    let longest = format!(r#"{{"name":"{}","categoryId":1}}"#, "\u{1f415}".repeat(LONGEST_NAME));
    let created = app.request("POST", "/v1/pets").json(&longest).header("Accept-Encoding", "gzip").send();
    assert!(created.assert_status(201).body.len() > 1024);
    created.assert_header("Content-Encoding", None).assert_header("Vary", None);
    let read = get(&app, &format!("/v1/pets/{}", created.json()["id"]), &["gzip"]);
    read.assert_status(200).assert_header("Content-Encoding", None).assert_header("Vary", None);
    assert_eq!(read.text(), created.text());

    for (request, status) in requests_of_every_status(&app) {
        let response = request.header("Accept-Encoding", "gzip").send();
        if response.assert_status(status).status >= 400 {
            response.assert_header("Content-Encoding", None).assert_header("Vary", None);
            if !response.body.is_empty() {
                response.assert_header("Content-Type", Some("application/json"));
            }
        }
    }
}

#[test]
fn large_static_files_are_sent_in_both_codings() {
    let app = TestApp::start();

    for path in ["/openapi.json", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        let plain = get(&app, path, &["gzip;q=0"]);
        assert!(plain.body.len() > 1024, "{path}");
        assert_gzip_of(&get(&app, path, &["gzip, br"]), &plain);
        assert_coding(&get(&app, path, &["gzip;q=0.5"]), Some("gzip"));
    }
}
