//! Each finding about Redis, with a server or a user that has this one problem.

use std::time::Duration;

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Unknown, Warning},
};
use animal_store_test_servers::{FaultProxy, RedisServer};

use crate::{
    permissions::{READER, everything, user, without},
    setup::{Keys, TEST_TIMEOUT, long_timeouts, settings},
};

/// Asserts the verdict about a subject, and that its finding or its advice contains the text.
#[track_caller]
fn assert_finding(findings: &[Finding], subject: &str, verdict: Verdict, text: &str) {
    let finding = findings.iter().find(|finding| finding.subject == subject);
    let finding = finding.unwrap_or_else(|| panic!("no {subject}: {findings:#?}"));
    assert_eq!(finding.verdict, verdict, "{findings:#?}");
    assert_eq!(finding.advice.is_none(), verdict == Ok, "{finding:?}");
    assert!(format!("{} {:?}", finding.found, finding.advice).contains(text), "{text}: {finding:?}");
}

/// The subjects whose verdict is not `ok`.
fn conspicuous(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.verdict != Ok).map(|finding| finding.subject).collect()
}

/// A server that loses nothing in a crash.
fn durable() -> RedisServer {
    RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"])
}

fn admin(server: &RedisServer) -> Keys {
    Keys::at(&server.url(), long_timeouts())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let before = everything(&server);
    let inspector = "+info +config|get";
    let found = user(&server, "reader", "%R~shop:v1:*", &format!("{READER} {inspector}")).diagnose().await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 9, "{found:#?}");
    // The default user may change keys.
    let found = admin(&server).diagnose().await;
    assert_eq!(conspicuous(&found), ["redis.permissions"], "{found:#?}");
    assert_finding(&found, "redis.permissions", Warning, "\"default\" may change API keys");
    assert_eq!(everything(&server), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_documented_user_may_not_read_is_unknown() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let found = user(&server, "reader", "%R~shop:v1:*", READER).diagnose().await;
    assert_eq!(conspicuous(&found), ["redis.persistence", "redis.eviction"], "{found:#?}");
    assert_finding(&found, "redis.persistence", Unknown, "appendonly yes");
    assert_finding(&found, "redis.eviction", Unknown, "noeviction");

    let found = user(&server, "informed", "%R~shop:v1:*", &format!("{READER} +info")).diagnose().await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_missing_permission_is_found() {
    let server = durable();
    for (permission, subject) in [
        ("+client|tracking", "redis.tracking"),
        ("+hmget", "redis.permissions"),
        ("+pttl", "redis.permissions"),
        ("+exists", "redis.index"),
        ("+ping", "redis.round_trip"),
    ] {
        let found = user(&server, permission, "%R~shop:v1:*", &without(READER, permission)).diagnose().await;
        assert_finding(&found, subject, Error, "docs/operations.md lists the permissions");
        assert_eq!(found.len(), 9, "{permission} {found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_keys_without_persistence_and_with_evictions_is_found() {
    let server = RedisServer::with(&["--maxmemory", "10mb", "--maxmemory-policy", "allkeys-lru"]);
    let found = admin(&server).diagnose().await;
    assert_finding(&found, "redis.index", Warning, "shop:v1:index");
    assert_finding(&found, "redis.persistence", Error, "a restart loses all API keys");
    assert_finding(&found, "redis.eviction", Error, "allkeys-lru");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_found() {
    let server = RedisServer::start();
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_finding(&admin(&server).diagnose().await, "redis.mode", Warning, "replica");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips_that_are_slow_for_the_lease_are_found() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let url = format!("redis://{}", proxy.address());
    proxy.delay(Duration::from_millis(50));
    let diagnose = async |lease| {
        let settings =
            RedisSettings { timeout: TEST_TIMEOUT, lease: Duration::from_millis(lease), ..settings("shop:") };
        Keys::at(&url, settings).diagnose().await
    };
    assert_finding(&diagnose(60_000).await, "redis.round_trip", Ok, "median ");
    assert_finding(&diagnose(100).await, "redis.round_trip", Error, "half of keys.redis.lease is 50ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("TRACKING");
    let found = Keys::at(&format!("redis://{}", proxy.address()), settings("shop:")).diagnose().await;
    assert_finding(&found, "redis.tracking", Error, "did not respond in time");
    assert_eq!(found.last().map(|finding| finding.subject), Some("redis.tracking"), "{found:#?}");
    assert_finding(&found, "redis.version", Ok, ".");
}
