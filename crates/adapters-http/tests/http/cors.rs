//! Which requests of pages of other origins are allowed.

use animal_store_app::ports::MockPetRepository;
use animal_store_test_servers::Response;

use crate::service::{SHOP, Service, any_key};

fn service() -> Service {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Ok(Vec::new()));
    Service::start(repository, any_key())
}

fn preflight(service: &Service, origin: &str, method: &str, headers: &str) -> Response {
    let request = service.anonymous("OPTIONS", "").header("Origin", origin);
    let request = request.header("Access-Control-Request-Method", method);
    request
        .header("Access-Control-Request-Headers", headers)
        .send()
}

#[test]
fn a_preflight_of_an_allowed_origin_gets_every_method_and_every_header_whatever_it_asks_for() {
    let service = service();
    for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "get", "*"] {
        for headers in [
            "",
            ",",
            "authorization,,content-type,",
            "authorization,traceparent,tracestate,baggage",
            "X-Request-Id ,\tAUTHORIZATION",
            "authorization,x-other",
            "authorization;content-type",
            "*",
            "\u{e9}",
        ] {
            let response = preflight(&service, SHOP, method, headers);
            response
                .assert_status(200)
                .assert_header("Access-Control-Allow-Origin", Some(SHOP));
            assert_eq!(
                response.items("Access-Control-Allow-Methods"),
                ["get", "head", "post"]
            );
            let headers = "authorization baggage content-type idempotency-key traceparent tracestate x-request-id";
            assert_eq!(
                response.items("Access-Control-Allow-Headers").join(" "),
                headers
            );
            response.assert_header("Access-Control-Max-Age", Some("3600"));
        }
    }
}

#[test]
fn a_preflight_of_another_origin_is_refused() {
    let service = service();
    let origins = [
        "",
        "*",
        "null",
        "http://shop.example",
        "https://shop.example/",
        "https://shop.example:443",
        "https://shop.example.evil.example",
        "https://evil-shop.example",
        "https://shop.example, http://localhost:3000",
        "https://SHOP.example",
        "https://shop.ex\u{e4}mple",
    ];
    for origin in origins {
        let list = service.request("GET", "").header("Origin", origin).send();
        list.assert_status(200)
            .assert_header("Access-Control-Allow-Origin", None);
    }
    for origin in origins {
        let response = preflight(&service, origin, "GET", "authorization");
        response
            .assert_status(200)
            .assert_header("Content-Type", None);
        assert!(
            !response
                .header_names()
                .iter()
                .any(|name| name.starts_with("access-control-")),
            "{response:?}"
        );
        let vary = ["access-control-request-method", "origin"];
        assert_eq!(
            (response.items("Vary"), &response.body[..]),
            (vary.map(str::to_owned).to_vec(), &b""[..])
        );
    }
}

#[test]
fn options_without_a_valid_method_is_an_ordinary_request_and_only_options_is_a_preflight() {
    let service = service();
    for (method, of_page, status) in [
        ("OPTIONS", "", 405),
        ("OPTIONS", "G T", 405),
        ("OPTIONS", "GET,POST", 405),
        ("OPTIONS", "(GET)", 405),
        ("options", "GET", 405),
        ("GET", "GET", 200),
    ] {
        let request = service.request(method, "").header("Origin", SHOP);
        let response = request
            .header("Access-Control-Request-Method", of_page)
            .send();
        response
            .assert_status(status)
            .assert_header("Access-Control-Allow-Origin", Some(SHOP));
        response.assert_header("Access-Control-Allow-Methods", None);
    }
}

#[test]
fn a_page_may_read_every_header_of_the_interface() {
    let response = service().request("GET", "").header("Origin", SHOP).send();
    let exposed = "deprecation idempotency-replayed link location ratelimit ratelimit-policy retry-after sunset \
        www-authenticate x-request-id";
    assert_eq!(
        response.items("Access-Control-Expose-Headers").join(" "),
        exposed
    );
}
