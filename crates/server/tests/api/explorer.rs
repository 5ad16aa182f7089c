//! The API explorer at `/docs`: a browser gets all of it from this service and from no other host.

use animal_store_test_servers::Response;

use crate::test_app::TestApp;

const FILES: [(&str, &str); 4] = [
    ("/docs/explorer.css", "text/css; charset=utf-8"),
    ("/docs/explorer.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
];

/// The references in the attributes of a page.
fn references(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in [" href=\"", " src=\"", " action=\"", " srcset=\"", " data=\"", " content=\"0;"] {
        for part in page.split(attribute).skip(1) {
            found.push(part.split('"').next().expect("a closing quotation mark").to_owned());
        }
    }
    found
}

/// The text without the XML namespace of images, which no browser fetches.
fn without_namespaces(text: &str) -> String {
    text.replace("http://www.w3.org/2000/svg", "")
}

fn page(app: &TestApp) -> Response {
    app.anonymous("GET", "/docs").send()
}

#[test]
fn the_page_needs_no_key_and_is_html() {
    let app = TestApp::start();

    let response = page(&app);
    response.assert_status(200).assert_header("Content-Type", Some("text/html; charset=utf-8"));
    response.assert_header("X-Content-Type-Options", Some("nosniff")).assert_header("WWW-Authenticate", None);
    assert!(response.text().starts_with("<!DOCTYPE html>"), "{}", response.text());
    for path in ["/docs?x=1", "/%64ocs"] {
        assert_eq!(app.anonymous("GET", path).send().assert_status(200).text(), response.text());
    }
    let wrong_key = app.anonymous("GET", "/docs").header("Authorization", "Bearer unknown").send();
    assert_eq!(wrong_key.assert_status(200).text(), response.text());
    app.anonymous("HEAD", "/docs").send().assert_head_of(&response);
}

#[test]
fn the_policy_allows_the_page_its_own_files_and_requests_to_its_origin_only() {
    let app = TestApp::start();

    let response = page(&app);
    let policy = response.header("Content-Security-Policy").expect("a policy");
    let mut directives: Vec<_> = policy.split(';').map(str::trim).collect();
    directives.sort_unstable();
    assert_eq!(
        directives,
        [
            "base-uri 'none'",
            "connect-src 'self'",
            "default-src 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "img-src 'self' data:",
            "script-src 'self'",
            "style-src 'self'",
        ]
    );
}

#[test]
fn the_page_contains_nothing_that_its_policy_forbids() {
    let app = TestApp::start();

    let response = page(&app);
    for inline in [" style=", "<style", " onload=", " onclick=", "javascript:", "<iframe", "<form", "<base", "<script>"]
    {
        assert!(!response.text().contains(inline), "{inline}");
    }
    for script in response.text().split("<script").skip(1) {
        assert!(script.contains("\"></script>"), "{script}");
    }
}

#[test]
fn every_reference_of_the_page_is_served_by_this_service() {
    let app = TestApp::start();

    let mut served = Vec::new();
    for reference in references(page(&app).text()) {
        if let Some(data) = reference.strip_prefix("data:image/svg+xml,") {
            assert!(!without_namespaces(data).contains("//"), "{data}");
            continue;
        }
        // Relative to /docs, so that it holds behind any base path.
        assert!(!reference.starts_with('/') && !reference.contains(':'), "{reference}");
        let path = format!("/{reference}");
        let response = app.anonymous("GET", &path).send();
        response.assert_status(200).assert_header("X-Content-Type-Options", Some("nosniff"));
        assert!(!response.body.is_empty(), "{path}");
        served.push(path);
    }
    served.sort_unstable();
    let mut files: Vec<_> = FILES.iter().map(|(path, _)| *path).collect();
    files.push("/openapi.json");
    assert_eq!(served, files);
}

#[test]
fn the_page_and_its_own_files_name_no_other_host() {
    let app = TestApp::start();

    for path in ["/docs", "/docs/explorer.css", "/docs/explorer.js"] {
        let text = without_namespaces(app.anonymous("GET", path).send().assert_status(200).text());
        // Comments of scripts are not references.
        let text: String = text.lines().filter(|line| !line.trim_start().starts_with("// ")).collect();
        for far in ["//", "http:", "https:", "@import", "url("] {
            assert!(!text.contains(far), "{far} in {path}");
        }
    }
    let script = app.anonymous("GET", "/docs/explorer.js").send();
    assert!(script.text().contains("url: 'openapi.json'"), "{}", script.text());
    // By default Swagger UI sends the document to a validator on another host.
    assert!(script.text().contains("validatorUrl: null"), "{}", script.text());
}

#[test]
fn the_files_need_no_key_have_their_types_and_may_be_cached_for_an_hour() {
    let app = TestApp::start();

    for (path, content_type) in FILES {
        let response = app.anonymous("GET", path).send();
        response.assert_status(200).assert_header("Content-Type", Some(content_type));
        response.assert_header("X-Content-Type-Options", Some("nosniff"));
        response.assert_header("Cache-Control", Some("max-age=3600"));
        app.anonymous("HEAD", path).send().assert_head_of(&response);
    }
}

#[test]
fn an_unknown_file_and_a_path_out_of_the_folder_are_a_404_with_the_error_body() {
    let app = TestApp::start();

    for path in [
        "/docs/",
        "/docs/page.html",
        "/docs/Explorer.js",
        "/docs/explorer.js/",
        "/docs//explorer.js",
        "/docs/%00",
        "/docs/%FF",
        "/docs/%zz",
        "/docs/explorer.js%00",
        "/docsx",
        "/explorer.js",
        "/docs/..",
        "/docs/../Cargo.toml",
        "/docs/..%2fexplorer.js",
        "/docs/%2e%2e/%2e%2e/etc/passwd",
        "/docs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/docs/..%5c..%5cetc%5cpasswd",
        "/docs/%252e%252e%252f",
        "/docs/./explorer.js",
        "/docs/%2Fetc%2Fpasswd",
    ] {
        let response = app.anonymous("GET", path).send();
        response.assert_header("Cache-Control", None).assert_error(404, "route_not_found");
    }
    app.anonymous("GET", "/v1/../docs").send().assert_error(401, "missing_api_key");
}

#[test]
fn the_page_and_its_files_can_only_be_read() {
    let app = TestApp::start();

    for path in FILES.iter().map(|(path, _)| *path).chain(["/docs", "/docs/nothing.js", "/"]) {
        for method in ["POST", "OPTIONS", "TRACE", "get"] {
            let response = app.anonymous(method, path).send();
            response.assert_error(405, "method_not_allowed");
            response.assert_header("Allow", Some("GET, HEAD")).assert_header("Content-Security-Policy", None);
        }
    }
}

#[test]
fn the_root_redirects_to_the_page_behind_any_base_path() {
    let app = TestApp::start();

    for path in ["/", "/?x=1"] {
        let response = app.anonymous("GET", path).send();
        response.assert_status(302).assert_header("Location", Some("docs")).assert_header("Content-Encoding", None);
        assert!(response.body.is_empty(), "{response:?}");
        app.anonymous("HEAD", path).send().assert_head_of(&response);
    }
}
