//! Several instances over one Redis.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use animal_store_test_servers::{RedisServer, RedisSpace};

use crate::{
    keys::{keys, token_and_id},
    program::{DEADLINE, Line, Program, Running, get},
};

fn instance(space: &RedisSpace) -> (Running, SocketAddr) {
    let program = Program::with_redis(space.url()).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix());
    let mut running = program.start();
    let address = running.address();
    (running, address)
}

fn status(address: SocketAddr, target: &str, token: &str) -> u16 {
    get(address, target, token)[9..12].parse().expect("a status")
}

#[track_caller]
fn wait_for(expected: u16, ask: impl Fn() -> u16) {
    let start = Instant::now();
    while ask() != expected {
        assert!(start.elapsed() < DEADLINE, "{} instead of {expected}", ask());
    }
}

#[test]
fn a_revoked_key_is_refused_by_every_instance() {
    let space = RedisSpace::new();
    let instances = [instance(&space), instance(&space)];

    for _ in 0..5 {
        let (token, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
        for (_, address) in &instances {
            assert_eq!(status(*address, "/v1/pets", &token), 200);
        }

        assert_eq!(keys(&space, &["revoke", &id]).run().code, Some(0));
        for (_, address) in &instances {
            wait_for(401, || status(*address, "/v1/pets", &token));
        }
    }
}

#[test]
fn a_new_key_works_where_its_token_was_refused_before() {
    let space = RedisSpace::new();
    let instances = [instance(&space), instance(&space)];
    for (_, address) in &instances {
        assert_eq!(status(*address, "/v1/pets", "from-elsewhere"), 401);
    }

    let create = keys(&space, &["create", "--label", "shop", "--token-stdin"]).stdin("from-elsewhere");
    assert_eq!(create.run().code, Some(0));
    for (_, address) in &instances {
        wait_for(200, || status(*address, "/v1/pets", "from-elsewhere"));
    }
}

#[test]
fn an_instance_starts_without_redis_is_not_ready_and_becomes_ready() {
    let mut server = RedisServer::start();
    let (token, _) = token_and_id(&Program::with_redis(&server.url()).args(&["keys", "create", "--label", "x"]).run());
    server.stop();

    let mut running = Program::with_redis(&server.url()).start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(status(address, "/v1/pets", &token), 503);
    assert_eq!(status(management, "/ready", ""), 503);
    assert_eq!(status(management, "/live", ""), 200);
    let reason = running.wait_for_event("no connection to Redis: requests are answered 503");
    assert!(reason["reason"].as_str().expect("a text").contains("refused"), "{reason}");

    // Empty: what it held has gone with it.
    server.start_again();
    wait_for(200, || status(management, "/ready", ""));
    assert_eq!(status(address, "/v1/pets", &token), 401);
}

#[test]
fn redis_restarted_empty_is_a_401_and_one_line_that_says_so() {
    let mut server = RedisServer::start();
    let (token, _) = token_and_id(&Program::with_redis(&server.url()).args(&["keys", "create", "--label", "x"]).run());
    let mut running = Program::with_redis(&server.url()).start();
    let address = running.address();
    assert_eq!(status(address, "/v1/pets", &token), 200);

    server.stop();
    wait_for(503, || status(address, "/v1/pets", &token));
    server.start_again();
    wait_for(401, || status(address, "/v1/pets", &token));
    // Several more leases, and requests.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        assert_eq!(status(address, "/v1/pets", &token), 401);
    }
    running.signal("TERM");

    let ended = running.wait();
    let empty = "Redis holds no index of API keys";
    assert_eq!(ended.stdout.iter().filter(|line| line.contains(empty)).count(), 1, "{ended:?}");
    assert!(ended.stdout.iter().any(|line| line.contains(empty) && line.contains("ERROR")), "{ended:?}");
}

#[test]
fn every_line_of_a_request_names_the_key_and_its_label() {
    let space = RedisSpace::new();
    let (token, id) = token_and_id(&keys(&space, &["create", "--label", "web shop"]).run());
    let (mut running, address) = instance(&space);
    for target in ["/v1/pets", "/v1/pets/1", "/v1/nowhere"] {
        get(address, target, &token);
    }

    for path in ["/v1/pets", "/v1/pets/1", "/v1/nowhere"] {
        let (key, label) = running.wait_for(|line| {
            let Line::Out(text) = line else { return None };
            let event: serde_json::Value = serde_json::from_str(text).ok()?;
            (event["path"] == path).then(|| (event["api_key"].clone(), event["api_key_label"].clone()))
        });
        assert_eq!((key, label), (id.as_str().into(), "web shop".into()));
    }
}
