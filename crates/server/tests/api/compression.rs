//! Answers in gzip: lists that are worth it and what is part of the program, for clients that like it best.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::{client::Response, headers::everywhere, test_app::TestApp};

const LONGEST_NAME: usize = 255;

const LIST: &str = "/v1/pets?limit=100";

/// Adds animals until the list of all of them has exactly so many bytes.
#[track_caller]
fn fill(app: &TestApp, bytes: usize) {
    let name = |length: usize| format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(length));
    let one = app.post(name(1)).assert_status(201).body.len();
    loop {
        let missing = bytes - app.get(LIST).body.len();
        // A comma, an animal and its name beyond the first letter.
        let length = missing - one;
        if length <= LONGEST_NAME {
            app.create(name(length));
            break;
        }
        app.create(name(LONGEST_NAME / 2));
    }
    assert_eq!(app.get(LIST).body.len(), bytes);
}

#[track_caller]
fn decompressed(response: &Response) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(&response.body[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

/// The answer in this form, with its length and no more than the client was promised.
#[track_caller]
fn assert_form(response: &Response, coding: Option<&str>) {
    response.assert_status(200).assert_header("Content-Encoding", coding);
    response.assert_header("Content-Length", Some(&response.body.len().to_string()));
    response.assert_header("Transfer-Encoding", None);
    assert_eq!(response.items("Vary"), ["accept-encoding"]);
}

/// The answer in gzip, where this is the plain one.
#[track_caller]
fn assert_gzip_of(response: &Response, plain: &Response) {
    assert_form(plain, None);
    assert_form(response, Some("gzip"));
    assert!(response.body.len() < plain.body.len(), "{} instead of {}", response.body.len(), plain.body.len());
    assert!(decompressed(response) == plain.body, "{} bytes of another text", response.body.len());
    for name in ["Content-Type", "Link", "Cache-Control", "Content-Security-Policy"] {
        response.assert_header(name, plain.header(name));
    }
}

fn get(app: &TestApp, path: &str, accepted: &[&str]) -> Response {
    let request = app.request("GET", path);
    accepted.iter().fold(request, |request, value| request.header("Accept-Encoding", value)).send()
}

#[test]
fn a_list_of_1024_bytes_is_as_it_is_and_one_of_1025_is_compressed() {
    for (bytes, coding) in [(1023, None), (1024, None), (1025, Some("gzip"))] {
        let app = TestApp::start();
        fill(&app, bytes);

        assert_form(&get(&app, LIST, &["gzip"]), coding);
        assert_form(&get(&app, LIST, &[]), None);
    }
}

#[test]
fn a_compressed_list_is_the_plain_one_with_its_link() {
    let app = TestApp::start();
    app.add_many(90);

    for (path, has_link) in [(LIST, false), ("/v1/pets?limit=30", true), ("/v1/pets?limit=30&status=sold", false)] {
        let plain = get(&app, path, &[]);
        assert_eq!(plain.header("Link").is_some(), has_link, "{plain:?}");
        plain.assert_header("Content-Type", Some("application/json"));
        assert_gzip_of(&get(&app, path, &["gzip"]), &plain);
    }
}

#[test]
fn a_list_goes_out_in_the_form_that_the_client_likes_best() {
    let app = TestApp::start();
    app.add_many(40);

    let gzip: [&[&str]; 16] = [
        &["gzip"],
        &["GZIP"],
        &["gZip;Q=1"],
        &["gzip;q=1.0"],
        &["gzip;q=0.001"],
        &["gzip ; q=0.5"],
        &["gzip, deflate, br, zstd"],
        &["br;q=1.0, gzip;q=0.8, *;q=0.1"],
        &["identity;q=0.5, gzip;q=0.6"],
        &["gzip;q=0.6,identity;q=0.5"],
        &["gzip, identity"],
        &["identity;q=0, gzip"],
        &["identity;q=0, gzip;q=0.1"],
        &["br", "gzip"],
        &["gzip", "br;q=0"],
        &[", ,gzip,,"],
    ];
    for accepted in gzip {
        assert_form(&get(&app, LIST, accepted), Some("gzip"));
    }

    let plain: [&[&str]; 20] = [
        &[],
        &[""],
        &["identity"],
        &["*"],
        &["*;q=0.5"],
        &["br"],
        &["deflate, br, zstd, compress"],
        &["gzip;q=0"],
        &["gzip;q=0.000"],
        &["gzip;q=0, *"],
        &["gzip;q=0.5, identity;q=0.8"],
        &["gzip;q=0.5", "identity;q=0.8"],
        &["gzipped"],
        &["xgzip, gzi, x-unknown"],
        &["gzip;q=2"],
        &["gzip;q=-1"],
        &["gzip;q=x"],
        &["gzip q=1"],
        &["\"gzip\""],
        &["identity;q=0, gzip;q=0"],
    ];
    for accepted in plain {
        assert_form(&get(&app, LIST, accepted), None);
    }
}

#[test]
fn every_list_says_that_it_depends_on_what_the_client_accepts() {
    let app = TestApp::start();
    for path in ["/v1/pets", "/v1/pets?limit=1", "/v1/pets?status=sold"] {
        assert_form(&get(&app, path, &["gzip"]), None);
        assert_form(&get(&app, path, &[]), None);
    }
    app.add_many(40);
    assert_form(&get(&app, "/v1/pets?limit=1", &["gzip"]), None);
    assert_form(&get(&app, LIST, &[]), None);
    assert_form(&get(&app, LIST, &["gzip"]), Some("gzip"));
}

#[test]
fn head_is_answered_as_get_in_both_forms() {
    let app = TestApp::start();
    app.add_many(40);

    for path in [LIST, "/v1/pets?limit=30", "/v1/pets?limit=1", "/openapi.json", "/docs", "/docs/swagger-ui-bundle.js"]
    {
        for accepted in ["gzip", "gzip;q=0"] {
            let head = app.request("HEAD", path).header("Accept-Encoding", accepted).send();
            head.assert_head_of(&get(&app, path, &[accepted]));
        }
    }
}

#[test]
fn single_animals_are_never_compressed_nor_is_an_error() {
    let app = TestApp::start();
    let longest = format!(r#"{{"name":"{}","categoryId":1}}"#, "\u{1f415}".repeat(LONGEST_NAME));
    let created = app.request("POST", "/v1/pets").json(&longest).header("Accept-Encoding", "gzip").send();
    assert!(created.assert_status(201).body.len() > 1024);
    created.assert_header("Content-Encoding", None).assert_header("Vary", None);
    let read = get(&app, &format!("/v1/pets/{}", created.json()["id"]), &["gzip"]);
    read.assert_status(200).assert_header("Content-Encoding", None).assert_header("Vary", None);
    assert_eq!(read.text(), created.text());

    for (request, status) in everywhere(&app) {
        let response = request.header("Accept-Encoding", "gzip").send();
        if response.assert_status(status).status >= 400 {
            response.assert_header("Content-Encoding", None).assert_header("Vary", None);
            if !response.body.is_empty() {
                response.json();
            }
        }
    }
}

#[test]
fn what_is_part_of_the_program_goes_out_in_both_forms() {
    let app = TestApp::start();

    for path in ["/openapi.json", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        let plain = get(&app, path, &["gzip;q=0"]);
        assert!(plain.body.len() > 1024, "{path}");
        assert_gzip_of(&get(&app, path, &["gzip, br"]), &plain);
        assert_gzip_of(&get(&app, path, &["gzip;q=0.5"]), &get(&app, path, &[]));
    }
}

#[test]
fn what_is_part_of_the_program_and_small_goes_out_as_it_is() {
    let app = TestApp::start();

    for path in ["/docs", "/docs/explorer.js", "/docs/explorer.css"] {
        let plain = get(&app, path, &[]);
        assert!(plain.body.len() <= 1024, "{path}");
        assert_form(&plain, None);
        assert_form(&get(&app, path, &["gzip"]), None);
    }
}
