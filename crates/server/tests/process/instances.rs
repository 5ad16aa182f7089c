//! Several instances with one Redis.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, RedisServer, RedisSpace, wait_until};

use crate::{
    keys::{keys, token_and_id},
    pets::status,
    program::{Program, Running},
};

fn instance(space: &RedisSpace) -> (Running, SocketAddr) {
    let mut running = Program::with_redis(space).start();
    let address = running.address();
    (running, address)
}

#[test]
fn a_revoked_key_is_refused_by_every_instance() {
    let space = RedisSpace::new();
    let instances = [instance(&space), instance(&space)];
    let (token, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    for (_, address) in &instances {
        assert_eq!(status(*address, &token), 200);
    }

    assert_eq!(keys(&space, &["revoke", &id]).run().code, Some(0));
    for (_, address) in &instances {
        wait_until(|| status(*address, &token) == 401);
    }
}

#[test]
fn an_instance_becomes_ready_with_redis_and_a_redis_that_lost_its_data_is_a_401_and_one_error() {
    let mut server = RedisServer::start();
    let url = server.url();
    let program = || Program::with_redis_url(&url);
    let (token, _) = token_and_id(&program().args(&["keys", "create", "--label", "x"]).run());
    let mut running = program().start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(status(address, &token), 200);

    server.stop();
    wait_until(|| status(address, &token) == 503);
    assert_eq!(HttpClient::new(management).get("/ready").status, 503);
    let line = running.wait_for_log(|event| event["path"] == "/ready");
    assert_eq!((&line["level"], &line["status"]), (&"ERROR".into(), &503.into()), "{line}");
    assert!(line["cause"].as_str().is_some_and(|cause| cause.starts_with("keys: ")), "{line}");
    assert_eq!(HttpClient::new(management).get("/live").status, 200);

    server.start_again();
    wait_until(|| HttpClient::new(management).get("/ready").status == 200);
    assert_eq!(status(address, &token), 401);
    // The service probes Redis twice per lease.
    let pings = || {
        let counts = server.command_counts();
        counts.lines().find_map(|line| line.strip_prefix("cmdstat_ping:calls=")?.parse().ok()).unwrap_or(0)
    };
    let earlier: u32 = pings();
    wait_until(|| pings() >= earlier + 4);
    assert_eq!(status(address, &token), 401);

    let exited = running.terminate();
    let errors: Vec<_> = exited.events().into_iter().filter(|event| event["index"].is_string()).collect();
    assert!(matches!(&errors[..], [error] if error["level"] == "ERROR"), "{exited:?}");
}
