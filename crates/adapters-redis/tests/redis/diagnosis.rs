//! Each finding about Redis, with a server or a user that has this one problem.

use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Unknown, Warning},
    test_support::{assert_finding, conspicuous},
};

use crate::{
    permissions::{READER, user, without},
    prelude::*,
};

/// A server that loses nothing in a crash.
fn durable() -> RedisServer {
    RedisServer::with("--appendonly yes --appendfsync always --enable-debug-command yes")
}

fn admin(server: &RedisServer) -> Keys {
    Keys::of(server)
}

/// The findings of a user that has only these permissions.
async fn found_with(server: &RedisServer, permissions: &str) -> Vec<Finding> {
    let reader = user(server, "reader", "%R~shop:v1:*", permissions);
    reader.diagnose().await
}

/// Checks a finding of the administrator.
async fn finds(server: &RedisServer, subject: &str, verdict: Verdict, text: &str) {
    let found = admin(server).diagnose().await;
    assert_finding(&found, subject, verdict, text);
}

#[tokio::test]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let before = server.run("DEBUG DIGEST");
    let found = found_with(&server, &format!("{READER} +config|get")).await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 6, "{found:#?}");
    assert_eq!(server.run("DEBUG DIGEST"), before);
}

#[tokio::test]
async fn what_the_documented_user_may_not_read_is_unknown() {
    let server = durable();
    admin(&server).add("key", "token").await;
    let found = found_with(&server, READER).await;
    let unknown = ["redis.persistence", "redis.eviction"];
    assert_eq!(conspicuous(&found), unknown, "{found:#?}");
    assert_finding(&found, "redis.persistence", Unknown, "appendonly yes");
    assert_finding(&found, "redis.eviction", Unknown, "noeviction");

    let found = found_with(&server, &format!("{READER} +info")).await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
}

#[tokio::test]
async fn each_missing_permission_is_found() {
    let server = durable();
    for permission in READER.split(' ') {
        let found = found_with(&server, &without(READER, permission)).await;
        let subject = if permission == "+exists" {
            "redis.index"
        } else {
            "redis.permissions"
        };
        let advice = "docs/operations/redis.md lists the permissions";
        assert_finding(&found, subject, Error, advice);
        assert_eq!(found.len(), 6, "{permission} {found:#?}");
    }
}

#[tokio::test]
async fn a_server_without_an_index_of_keys_a_replica_and_a_cluster_are_found() {
    let server = RedisServer::start();
    let subject = "redis.index";
    finds(&server, subject, Warning, "shop:v1:index").await;
    let advice = "as a user of Redis who may (keys.redis.admin_url)";
    finds(&server, subject, Warning, advice).await;
    server.run("SET shop:v1:index index");
    finds(&server, subject, Error, "shop:v1:index is not a hash").await;
    server.run("REPLICAOF 127.0.0.1 1");
    finds(&server, "redis.connection", Error, "replica").await;
    let cluster = RedisServer::with("--cluster-enabled yes");
    finds(&cluster, "redis.mode", Error, "cluster").await;
}

#[tokio::test]
async fn settings_with_which_keys_can_be_lost_are_found() {
    let server = RedisServer::start();
    for (append_only, fsync, save, verdict) in [
        ("yes", "always", "", Ok),
        ("yes", "everysec", "", Warning),
        ("no", "always", "3600 1", Warning),
        ("no", "always", "", Error),
    ] {
        server.run(&format!(
            "CONFIG SET appendonly {append_only} appendfsync {fsync}"
        ));
        server.command(&["CONFIG", "SET", "save", save]);
        finds(&server, "redis.persistence", verdict, "appendonly yes").await;
    }
    for (limit, policy, verdict) in [
        ("0", "allkeys-lru", Ok),
        ("10mb", "noeviction", Ok),
        ("10mb", "allkeys-lru", Error),
    ] {
        server.run(&format!(
            "CONFIG SET maxmemory {limit} maxmemory-policy {policy}"
        ));
        finds(&server, "redis.eviction", verdict, "").await;
    }
}

#[tokio::test]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("TRACKING");
    let found = Keys::with(&url_of(&proxy), few_seconds()).diagnose().await;
    let subject = "redis.permissions";
    assert_finding(&found, subject, Error, "did not respond in time");
    assert_eq!(found.last().map(|finding| finding.subject), Some(subject));
    assert_finding(&found, "redis.mode", Ok, "standalone");
}
