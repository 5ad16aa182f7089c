//! The log lines of requests.

use std::{num::NonZeroU32, sync::Mutex};

use animal_store_adapters_http::{AuthFailureLimiter, reloaded};
use animal_store_app::ports::{MockPetRepository, StoreFailure};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use crate::service::{Service, any_key};

/// The log in memory.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The line of the request with this id.
#[track_caller]
fn line_of(request_id: &str) -> Value {
    let log = LOG.lock().expect("not poisoned").clone();
    let mut lines = log
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    lines
        .find(|line: &Value| line["request_id"] == request_id)
        .expect("a line of the request")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with one value on a line")]
fn a_log_line_explains_a_failure() {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(|| LOG.make_writer())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    let mut repository = MockPetRepository::new();
    repository
        .expect_find()
        .withf(|id| id.get() == 71)
        .returning(|_| Err(StoreFailure::Corrupt("status 7".into())));
    repository
        .expect_find()
        .withf(|id| id.get() == 72)
        .returning(|_| panic!("on purpose"));
    repository
        .expect_find()
        .withf(|id| id.get() == 73)
        .returning(|_| Ok(None));
    repository
        .expect_find()
        .withf(|id| id.get() == 74)
        .returning(|_| Err(StoreFailure::Overloaded));
    let service = Service::start(repository, any_key());

    for (id, status) in [("71", 500), ("72", 500), ("73", 404), ("74", 503)] {
        let request = service
            .request("GET", &format!("/{id}"))
            .header("X-Request-Id", id);
        request
            .header("X-Forwarded-For", "192.0.2.1, 203.0.113.7")
            .send()
            .assert_status(status);
    }

    let failed = line_of("71");
    assert_eq!(
        (&failed["level"], &failed["status"]),
        (&"ERROR".into(), &500.into()),
        "{failed}"
    );
    assert_eq!(
        failed["cause"], "the store contains an invalid entry: status 7",
        "{failed}"
    );
    assert_eq!(
        (&failed["api_key"], &failed["deprecated"]),
        (&"key".into(), &true.into()),
        "{failed}"
    );
    assert_eq!(failed["api_key_label"], "label of key", "{failed}");

    assert_eq!(
        (&failed["code"], &failed["client"]),
        (&"internal_error".into(), &"203.0.113.7".into()),
        "{failed}"
    );

    let panicked = line_of("72");
    assert_eq!(
        (&panicked["level"], &panicked["status"]),
        (&"ERROR".into(), &500.into()),
        "{panicked}"
    );
    assert_eq!(
        (&panicked["method"], &panicked["path"]),
        (&"GET".into(), &"/v1/pets/72".into()),
        "{panicked}"
    );

    assert_eq!(
        (&panicked["code"], &panicked["client"]),
        (&"internal_error".into(), &"203.0.113.7".into())
    );

    let refused = line_of("73");
    assert_eq!(
        (&refused["level"], refused.get("cause")),
        (&"INFO".into(), None),
        "{refused}"
    );
    assert_eq!(
        (&refused["code"], refused.get("user_agent")),
        (&"pet_not_found".into(), None),
        "{refused}"
    );

    let shed = line_of("74");
    assert_eq!(
        (&shed["level"], &shed["shed"]),
        (&"ERROR".into(), &"storage_queue".into()),
        "{shed}"
    );
    assert_eq!(
        (&shed["code"], shed.get("cause")),
        (&"overloaded".into(), None),
        "{shed}"
    );

    let padding = "x".repeat(200);
    for (id, given, logged) in [
        (
            "81",
            "curl/8.5.0 \"quoted\" \u{1f600}",
            Some("curl/8.5.0 \"quoted\" \u{1f600}"),
        ),
        ("82", "a\u{9b}31mb", Some("a")),
        ("83", "a\tb", Some("a")),
        ("84", "", None),
        ("85", &padding, Some(&padding[..128])),
        (
            "86",
            &format!("{}ü", &padding[..127]),
            Some(&padding[..127]),
        ),
    ] {
        let request = service
            .request("GET", "/73")
            .header("X-Request-Id", id)
            .header("User-Agent", given);
        request.send().assert_status(404);
        let line = line_of(id);
        assert_eq!(
            (line["user_agent"].as_str(), &line["client"]),
            (logged, &"127.0.0.1".into()),
            "{line}"
        );
    }

    let limited = Service::start_with(MockPetRepository::new(), any_key(), |limits| {
        limits.auth_failures = reloaded(Some(AuthFailureLimiter::new(NonZeroU32::MIN)));
    });
    limited.anonymous("GET", "").send().assert_status(401);
    limited
        .request("GET", "")
        .header("X-Request-Id", "91")
        .send()
        .assert_status(429);
    let line = line_of("91");
    assert_eq!(
        (&line["level"], &line["code"]),
        (&"INFO".into(), &"rate_limited".into()),
        "{line}"
    );
    assert_eq!(
        (&line["client"], line.get("api_key")),
        (&"127.0.0.1".into(), None),
        "{line}"
    );
}
