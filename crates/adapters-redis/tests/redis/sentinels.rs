//! Sentinels that know the master, fail-overs, and replicas that confirm a change.

use std::sync::atomic::Ordering;

use animal_store_test_servers::SentinelServer;
use secrecy::SecretString;

use crate::{
    connections::{fails, fails_with, tls, works},
    fake_sentinel::FakeSentinel,
    permissions::{READER, WRITER},
    prelude::*,
};

/// Returns the URL of the service, with what stands before the hosts and behind the service.
fn url(login: &str, sentinels: &[&SentinelServer], rest: &str) -> String {
    let hosts: Vec<_> = sentinels
        .iter()
        .map(|sentinel| format!("localhost:{}", sentinel.port()))
        .collect();
    format!("redis+sentinel://{login}{}/shop{rest}", hosts.join(","))
}

/// Keys whose store waits for a replica until this timeout.
fn replicated(url: &str, settings: RedisSettings, timeout: Duration) -> Keys {
    let mut keys = Keys::with(url, settings);
    keys.store = RedisApiKeyStore::new(endpoint(url), "shop:", timeout, 1);
    keys
}

/// The old master returns with keys of its own, and Sentinels make it a replica only seconds later: here, after the
/// test.
#[tokio::test]
async fn after_a_fail_over_keys_are_those_of_the_new_master() {
    let mut master = RedisServer::start();
    let _replica = RedisServer::replica_of(&master);
    let sentinels = SentinelServer::three_of(&master, 1);
    let url = url("", &sentinels.each_ref(), "");
    let keys = replicated(&url, settings(), TEST_TIMEOUT);
    let directory = keys.directory().await;
    for token in ["used", "revoked"] {
        keys.add(token, token).await;
        becomes(&directory, token, Accepted).await;
    }
    let confirmed = keys.store.confirm_changes().await;
    confirmed.expect("the replica has the keys");

    master.stop();
    changes_to(&directory, "used", Failed).await;
    sentinels.iter().for_each(SentinelServer::notice);
    becomes(&directory, "used", Accepted).await;
    sentinels.iter().for_each(SentinelServer::calm);
    keys.revoke("revoked").await;
    changes_to(&directory, "revoked", Refused).await;

    // Sentinels that were suspended change no server for half a minute.
    sentinels.iter().for_each(SentinelServer::pause);
    master.start_again();
    let old = Keys::of(&master);
    old.add("revoked", "revoked").await;
    sentinels.iter().for_each(SentinelServer::resume);
    let new = keys.directory().await;
    for directory in [&directory, &new] {
        for (token, outcome) in [("revoked", Refused), ("used", Accepted)] {
            becomes(directory, token, outcome).await;
        }
    }
}

/// One that was cut off, or was stopped for a time, may name a master that was replaced.
#[tokio::test]
async fn a_master_that_half_of_the_sentinels_name_is_not_believed() {
    let [old, new] = [(); 2].map(|()| RedisServer::start());
    Keys::of(&old).add("key", "token").await;
    let late = SentinelServer::of(&old, 1);
    let [one, two, three] = [(); 3].map(|()| SentinelServer::of(&new, 1));
    for sentinels in [[&late, &one, &two], [&one, &late, &two]] {
        let directory = Keys::at(&url("", &sentinels, "")).directory().await;
        becomes(&directory, "token", Refused).await;
    }
    fails(
        endpoint(&url("", &[&late, &one], "")),
        "the Sentinels name different masters",
    )
    .await;
    let other = url("", &[&one, &two], "").replace("/shop", "/other");
    fails(
        endpoint(&other),
        "a Sentinel knows no master of this name that is up",
    )
    .await;

    // One that does not respond delays no other.
    three.pause();
    works(endpoint(&url("", &[&three, &one, &two], "/3"))).await;
    fails_with(
        endpoint(&url("", &[&three, &one], "")),
        settings(),
        "responded in time",
    )
    .await;
}

/// The Sentinels may have lost the old master, and the instance has not.
#[tokio::test]
async fn a_session_ends_when_the_sentinels_name_another_master() {
    let [old, new] = [(); 2].map(|()| RedisServer::start());
    let sentinel = SentinelServer::of(&old, 1);
    let directory = Keys::at(&url("", &[&sentinel], "")).directory().await;
    Keys::of(&old).add("key", "token").await;
    becomes(&directory, "token", Accepted).await;
    sentinel.run("SENTINEL REMOVE shop");
    let port = new.port();
    sentinel.run(&format!("SENTINEL MONITOR shop 127.0.0.1 {port} 1"));
    changes_to(&directory, "token", Refused).await;
}

#[tokio::test]
async fn a_session_continues_while_the_sentinels_do_not_respond() {
    let server = RedisServer::start();
    let sentinel = SentinelServer::of(&server, 1);
    let proxy = FaultProxy::to(sentinel.port());
    let url = format!("redis+sentinel://{}/shop", proxy.address());
    let settings = RedisSettings {
        timeout: TEST_TIMEOUT / 10,
        ..long_timeouts()
    };
    let keys = Keys::with(&url, settings);
    keys.add("key", "token").await;
    let directory = keys.directory().await;
    becomes(&directory, "token", Accepted).await;
    proxy.freeze();
    let asked = proxy.accepted();
    // The second time, the connection that was kept has failed.
    wait_until("the instance asks twice", async || proxy.accepted() > asked).await;
    assert!(is_ready(&directory).await);
    assert_eq!(use_token(&directory, "token").await, Accepted);
}

/// Returns a number that a server counts.
fn info(server: &RedisServer, section: &str, name: &str) -> usize {
    let counts = server.run(&format!("INFO {section}"));
    let mut lines = counts.lines();
    let count = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    count.expect("it is counted").parse().expect("a number")
}

/// Returns the number of connections that a server has accepted.
fn connections_received(server: &RedisServer) -> usize {
    info(server, "stats", "total_connections_received")
}

#[tokio::test]
async fn an_instance_asks_each_sentinel_over_one_connection_until_it_breaks() {
    let server = RedisServer::start();
    let sentinels = [(); 3].map(|()| FakeSentinel::of([server.port(); 2]));
    let proxy = FaultProxy::to(sentinels[2].address.port());
    let url = format!(
        "redis+sentinel://{},{},{}/shop",
        sentinels[0].address,
        sentinels[1].address,
        proxy.address()
    );
    let connections = || {
        sentinels
            .each_ref()
            .map(|each| each.connections.load(Ordering::Relaxed))
    };
    let questions = || sentinels[2].questions.load(Ordering::Relaxed);
    let asked_again = async || {
        let asked = questions();
        let several = async || questions() >= asked + 3;
        wait_until("the instance asks several times", several).await;
    };
    let directory = Keys::at(&url).directory().await;
    becomes(&directory, "token", Refused).await;
    asked_again().await;
    assert_eq!(connections(), [1; 3]);
    let received = connections_received(&server);
    asked_again().await;
    // The test itself opens one.
    assert_eq!(connections_received(&server), received + 1);

    proxy.cut();
    asked_again().await;
    assert_eq!(connections(), [1, 1, 2]);
}

/// Otherwise, a key that was revoked on the server of the lookups would stay in the cache.
#[tokio::test]
async fn both_connections_of_a_session_lead_to_one_server() {
    let servers = [(); 2].map(|()| RedisServer::start());
    let sentinel = FakeSentinel::of(servers.each_ref().map(RedisServer::port));
    let url = format!("redis+sentinel://{}/shop", sentinel.address);
    let directory = Keys::at(&url).directory().await;
    becomes(&directory, "token", Refused).await;
    // The Sentinel names the other server every second: for a moment there are connections to both.
    wait_until("one server has both connections", async || {
        let clients = servers.each_ref().map(|server| {
            let clients = server.run("CLIENT LIST");
            clients.matches(" name=animal-store ").count()
        });
        clients.contains(&2) && clients.contains(&0)
    })
    .await;
}

#[tokio::test]
async fn the_users_need_no_more_permission_on_the_server_and_one_on_the_sentinels() {
    let server = RedisServer::start();
    server.run(&format!(
        "ACL SETUSER app on >hunter2 ~shop:v1:* {READER} {WRITER}"
    ));
    let sentinel = SentinelServer::of(&server, 1);
    sentinel.run("ACL SETUSER app on >hunter2+ +sentinel|masters");
    sentinel.run("ACL SETUSER other on >hunter2");
    sentinel.run("ACL SETUSER default off");
    let at = |login: &str, options: &str| endpoint(&url(login, &[&sentinel], options));
    let right = "?sentinel_user=app&sentinel_password=hunter2%2B";
    works(at("app:hunter2@", right)).await;
    fails(at("app:hunter2@", ""), "NOAUTH").await;
    fails(
        at(
            "app:hunter2@",
            "?sentinel_user=app&sentinel_password=hunter2",
        ),
        "WRONGPASS",
    )
    .await;
    let other = Keys::over(at("app:hunter2%2B@", right), long_timeouts());
    let refused = other.store.list().await;
    let refused = refused.expect_err("the password is wrong");
    assert!(refused.reason().contains("(WRONGPASS)"), "{refused:?}");
    let other = "?sentinel_user=other&sentinel_password=hunter2";
    fails(at("app:hunter2@", other), "NOPERM").await;
}

#[tokio::test]
async fn the_sentinels_and_the_server_use_tls() {
    let [server, other] = [(); 2].map(|()| RedisServer::with_tls());
    let sentinel = SentinelServer::of(&server, 1);
    let [ours, theirs] = [&server, &other].map(RedisServer::certificates);
    let url = url("", &[&sentinel], "");
    let encrypted: SecretString = url.replace("redis+", "rediss+").into();
    let at = |authority| {
        RedisEndpoint::parse(&encrypted, tls(Some(authority), Some(ours))).expect("an endpoint")
    };
    works(at(ours)).await;
    fails(at(theirs), "certificate").await;
    fails(endpoint(&url), "").await;
}

#[tokio::test]
async fn a_change_that_too_few_replicas_confirm_is_kept() {
    let server = RedisServer::start();
    let keys = replicated(&server.url(), long_timeouts(), Duration::from_secs(15));
    let unconfirmed = async || {
        let outcome = keys.store.confirm_changes().await;
        outcome.expect_err("it is not confirmed").to_string()
    };
    keys.add("key", "token").await;
    let reason = unconfirmed().await;
    assert!(
        reason.ends_with("0 of 1 replicas confirmed it in time"),
        "{reason}"
    );
    let nothing = keys.store.confirm_changes().await;
    nothing.expect("there is no change");
    server.run("ACL SETUSER default -wait");
    keys.revoke("key").await;
    let reason = unconfirmed().await;
    assert!(reason.contains("NOPERM"), "{reason}");
    assert_eq!(keys.listed().await, [""; 0]);
}

/// The command that made the change may have failed to confirm it. `WAIT` is about the writes of a connection: servers
/// since Redis 7.2 count every replica for one without any.
#[tokio::test]
async fn the_repetition_of_a_change_is_confirmed_by_a_write() {
    let server = RedisServer::start();
    let _replica = RedisServer::replica_of(&server);
    let keys = replicated(&server.url(), long_timeouts(), TEST_TIMEOUT);
    keys.add("key", "token").await;
    let key = keys.store.list().await.expect("listed").remove(0);
    for repetition in [ApiKeyChange::Import(key), add("other", "token", None)] {
        let changed = keys.store.change(repetition, "test").await;
        assert!(!matches!(changed, Err(ApiKeyChangeError::Store(_))));
        let before = info(&server, "persistence", "rdb_changes_since_last_save");
        let confirmed = keys.store.confirm_changes().await;
        confirmed.expect("the replica has the write");
        let after = info(&server, "persistence", "rdb_changes_since_last_save");
        assert!(after > before, "{before} changes");
    }
    assert_eq!(server.run("HKEYS shop:v1:index"), "key");
}
