//! Each finding about Redis, with a server or a user that has this one problem.

use animal_store_app::{
    Verdict::{Error, Ok, Unknown, Warning},
    test_support::{assert_finding, conspicuous},
};
use animal_store_test_servers::{FaultProxy, RedisServer};

use crate::{
    permissions::{READER, user, without},
    setup::{Keys, long_timeouts, run, settings},
};

/// A server that loses nothing in a crash.
fn durable() -> RedisServer {
    RedisServer::with(&[
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--enable-debug-command",
        "yes",
    ])
}

fn admin(server: &RedisServer) -> Keys {
    Keys::at(&server.url(), long_timeouts())
}

#[tokio::test]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let before = run(&server, "DEBUG DIGEST");
    let found = user(
        &server,
        "reader",
        "%R~shop:v1:*",
        &format!("{READER} +config|get"),
    )
    .diagnose()
    .await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 6, "{found:#?}");
    assert_eq!(run(&server, "DEBUG DIGEST"), before);
}

#[tokio::test]
async fn what_the_documented_user_may_not_read_is_unknown() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let found = user(&server, "reader", "%R~shop:v1:*", READER)
        .diagnose()
        .await;
    assert_eq!(
        conspicuous(&found),
        ["redis.persistence", "redis.eviction"],
        "{found:#?}"
    );
    assert_finding(&found, "redis.persistence", Unknown, "appendonly yes");
    assert_finding(&found, "redis.eviction", Unknown, "noeviction");

    let found = user(
        &server,
        "informed",
        "%R~shop:v1:*",
        &format!("{READER} +info"),
    )
    .diagnose()
    .await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
}

#[tokio::test]
async fn each_missing_permission_is_found() {
    let server = durable();
    for permission in READER.split(' ') {
        let found = user(
            &server,
            permission,
            "%R~shop:v1:*",
            &without(READER, permission),
        )
        .diagnose()
        .await;
        let subject = if permission == "+exists" {
            "redis.index"
        } else {
            "redis.permissions"
        };
        assert_finding(
            &found,
            subject,
            Error,
            "docs/operations/redis.md lists the permissions",
        );
        assert_eq!(found.len(), 6, "{permission} {found:#?}");
    }
}

#[tokio::test]
async fn a_server_without_keys_a_replica_and_a_cluster_are_found() {
    let server = RedisServer::start();
    let found = admin(&server).diagnose().await;
    assert_finding(&found, "redis.index", Warning, "shop:v1:index");
    assert_finding(
        &found,
        "redis.index",
        Warning,
        "as a user of Redis who may (keys.redis.admin_url)",
    );
    run(&server, "REPLICAOF 127.0.0.1 1");
    assert_finding(
        &admin(&server).diagnose().await,
        "redis.connection",
        Error,
        "replica",
    );
    let cluster = RedisServer::with(&["--cluster-enabled", "yes"]);
    assert_finding(
        &admin(&cluster).diagnose().await,
        "redis.mode",
        Error,
        "cluster",
    );
}

#[tokio::test]
async fn settings_with_which_keys_can_be_lost_are_found() {
    let server = RedisServer::start();
    let keys = admin(&server);
    for (append_only, fsync, save, verdict) in [
        ("yes", "always", "", Ok),
        ("yes", "everysec", "", Warning),
        ("no", "always", "3600 1", Warning),
        ("no", "always", "", Error),
    ] {
        server.command(&[
            "CONFIG",
            "SET",
            "appendonly",
            append_only,
            "appendfsync",
            fsync,
            "save",
            save,
        ]);
        assert_finding(
            &keys.diagnose().await,
            "redis.persistence",
            verdict,
            "appendonly yes",
        );
    }
    for (limit, policy, verdict) in [
        ("0", "allkeys-lru", Ok),
        ("10mb", "noeviction", Ok),
        ("10mb", "allkeys-lru", Error),
    ] {
        server.command(&[
            "CONFIG",
            "SET",
            "maxmemory",
            limit,
            "maxmemory-policy",
            policy,
        ]);
        assert_finding(&keys.diagnose().await, "redis.eviction", verdict, "");
    }
}

#[tokio::test]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("TRACKING");
    let found = Keys::at(&format!("redis://{}", proxy.address()), settings())
        .diagnose()
        .await;
    assert_finding(
        &found,
        "redis.permissions",
        Error,
        "did not respond in time",
    );
    assert_eq!(
        found.last().map(|finding| finding.subject),
        Some("redis.permissions"),
        "{found:#?}"
    );
    assert_finding(&found, "redis.mode", Ok, "standalone");
}
