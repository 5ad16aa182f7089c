//! Sentinels that know the master, fail-overs, and replicas that confirm a change.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use animal_store_adapters_redis::{RedisApiKeyStore, RedisEndpoint};
use animal_store_app::ports::ApiKeyStore;
use animal_store_test_servers::{FaultProxy, RedisServer, SentinelServer};
use secrecy::SecretString;

use crate::{
    connections::{fails, fails_with, tls, works},
    permissions::{READER, WRITER},
    requests::{Accepted, Failed, Refused, becomes, changes_to, is_ready, use_token, wait_until},
    setup::{Keys, add, endpoint, long_timeouts, revoke, run, settings},
};

/// Returns the URL of the service, with what stands before the hosts and behind the service.
fn url(login: &str, sentinels: &[&SentinelServer], rest: &str) -> String {
    let hosts: Vec<_> = sentinels
        .iter()
        .map(|sentinel| format!("localhost:{}", sentinel.port()))
        .collect();
    format!("redis+sentinel://{login}{}/shop{rest}", hosts.join(","))
}

fn store(endpoint: RedisEndpoint, replicas: u8) -> RedisApiKeyStore {
    RedisApiKeyStore::new(endpoint, "shop:", Duration::from_millis(500), replicas)
}

/// The old master returns with keys of its own, and Sentinels make it a replica only seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_fail_over_keys_are_those_of_the_new_master() {
    let mut master = RedisServer::start();
    let _replica = RedisServer::replica_of(&master);
    let sentinels = SentinelServer::three_of(&master, 1);
    let url = url("", &sentinels.each_ref(), "");
    let keys = Keys::at(&url, settings());
    let directory = keys.directory().await;
    let store = store(endpoint(&url), 1);
    for token in ["used", "revoked"] {
        store
            .change(add(token, token, None), "test")
            .await
            .expect("the key is added");
        becomes(&directory, token, Accepted).await;
    }
    store
        .confirm_changes()
        .await
        .expect("the replica has the keys");

    master.stop();
    changes_to(&directory, "used", Failed).await;
    sentinels.iter().for_each(SentinelServer::notice);
    becomes(&directory, "used", Accepted).await;
    sentinels.iter().for_each(SentinelServer::calm);
    keys.revoke("revoked").await;
    changes_to(&directory, "revoked", Refused).await;

    master.start_again();
    let old = Keys::at(&master.url(), long_timeouts());
    old.add("revoked", "revoked").await;
    let new = keys.directory().await;
    for directory in [&directory, &new] {
        for (token, outcome) in [("revoked", Refused), ("used", Accepted)] {
            becomes(directory, token, outcome).await;
        }
    }
}

/// One that was cut off, or was stopped for a time, may name a master that was replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_half_of_the_sentinels_name_is_not_believed() {
    let [old, new] = [(); 2].map(|()| RedisServer::start());
    Keys::at(&old.url(), long_timeouts())
        .add("key", "token")
        .await;
    let late = SentinelServer::of(&old, 1);
    let [one, two, three] = [(); 3].map(|()| SentinelServer::of(&new, 1));
    for sentinels in [[&late, &one, &two], [&one, &late, &two]] {
        let directory = Keys::at(&url("", &sentinels, ""), long_timeouts())
            .directory()
            .await;
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_when_the_sentinels_name_another_master() {
    let [old, new] = [(); 2].map(|()| RedisServer::start());
    let sentinel = SentinelServer::of(&old, 1);
    let directory = Keys::at(&url("", &[&sentinel], ""), long_timeouts())
        .directory()
        .await;
    Keys::at(&old.url(), long_timeouts())
        .add("key", "token")
        .await;
    becomes(&directory, "token", Accepted).await;
    sentinel.command(&["SENTINEL", "REMOVE", "shop"]);
    sentinel.command(&[
        "SENTINEL",
        "MONITOR",
        "shop",
        "127.0.0.1",
        &new.port().to_string(),
        "1",
    ]);
    changes_to(&directory, "token", Refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_continues_while_the_sentinels_do_not_respond() {
    let server = RedisServer::start();
    let sentinel = SentinelServer::of(&server, 1);
    let proxy = FaultProxy::to(sentinel.port());
    let keys = Keys::at(
        &format!("redis+sentinel://{}/shop", proxy.address()),
        long_timeouts(),
    );
    keys.add("key", "token").await;
    let directory = keys.directory().await;
    becomes(&directory, "token", Accepted).await;
    proxy.freeze();
    let asked = proxy.accepted();
    // The second time, the first one has failed.
    wait_until("the instance asks twice", async || {
        proxy.accepted() >= asked + 2
    })
    .await;
    assert!(is_ready(&directory).await);
    assert_eq!(use_token(&directory, "token").await, Accepted);
}

/// Starts a Sentinel that names another of these masters each time.
fn sentinel_of(masters: [u16; 2]) -> RedisEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (connection, master) in listener.incoming().zip(masters.iter().cycle()) {
            let (mut connection, mut received) = (connection.expect("a connection"), [0; 4096]);
            while let Ok(length @ 1..) = connection.read(&mut received) {
                let request = String::from_utf8_lossy(&received[..length]);
                let response = if request.contains("HELLO") {
                    "%1\r\n+proto\r\n:3\r\n".to_owned()
                        + &"+OK\r\n".repeat(request.matches("CLIENT").count())
                } else if request.contains("ROLE") {
                    "*2\r\n$8\r\nsentinel\r\n*0\r\n".to_owned()
                } else {
                    let address = format!("+ip\r\n+127.0.0.1\r\n+port\r\n+{master}\r\n");
                    format!("*1\r\n%4\r\n+name\r\n+shop\r\n+flags\r\n+master\r\n{address}")
                };
                connection
                    .write_all(response.as_bytes())
                    .expect("the client reads");
            }
        }
    });
    endpoint(&format!("redis+sentinel://{address}/shop"))
}

/// Otherwise, a key that was revoked on the server of the lookups would stay in the cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_connections_of_a_session_lead_to_one_server() {
    let servers = [(); 2].map(|()| RedisServer::start());
    let sentinel = sentinel_of(servers.each_ref().map(RedisServer::port));
    let directory = Keys::over(sentinel, long_timeouts()).directory().await;
    becomes(&directory, "token", Refused).await;
    let clients = servers.each_ref().map(|server| {
        run(server, "CLIENT LIST")
            .matches(" name=animal-store ")
            .count()
    });
    assert!(clients.contains(&2) && clients.contains(&0), "{clients:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_users_need_one_more_permission_on_the_server_and_two_on_the_sentinels() {
    let server = RedisServer::start();
    run(
        &server,
        &format!("ACL SETUSER app on >hunter2 ~shop:v1:* {READER} {WRITER} +role"),
    );
    let sentinel = SentinelServer::of(&server, 1);
    for words in [
        "ACL SETUSER app on >hunter2+ +role +sentinel|masters",
        "ACL SETUSER default off",
    ] {
        sentinel.command(&words.split(' ').collect::<Vec<_>>());
    }
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
    fails(at("app:hunter2%2B@", right), "WRONGPASS").await;
    run(&server, "ACL SETUSER app -role");
    fails(at("app:hunter2@", right), "NOPERM").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sentinels_and_the_server_use_tls() {
    let (server, other) = (RedisServer::with_tls(), RedisServer::with_tls());
    let sentinel = SentinelServer::of(&server, 1);
    let (ours, theirs) = (server.certificates(), other.certificates());
    let url = url("", &[&sentinel], "");
    let encrypted: SecretString = url.replace("redis+", "rediss+").into();
    let at = |authority| {
        RedisEndpoint::parse(&encrypted, tls(Some(authority), Some(ours))).expect("an endpoint")
    };
    works(at(ours)).await;
    fails(at(theirs), "certificate").await;
    fails(endpoint(&url), "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_too_few_replicas_confirm_is_kept() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_timeouts());
    let store = store(endpoint(&server.url()), 1);
    store
        .change(add("key", "token", None), "test")
        .await
        .expect("the key is added");
    let reason = store
        .confirm_changes()
        .await
        .expect_err("there is no replica")
        .to_string();
    assert!(
        reason.ends_with("0 of 1 replicas confirmed it in time"),
        "{reason}"
    );
    store.confirm_changes().await.expect("there is no change");
    store
        .change(add("other", "token", None), "test")
        .await
        .expect_err("the token is registered already");
    store
        .confirm_changes()
        .await
        .expect_err("there is still no replica");

    run(&server, "ACL SETUSER default -wait");
    store
        .change(revoke("key"), "test")
        .await
        .expect("the key is revoked");
    let reason = store
        .confirm_changes()
        .await
        .expect_err("it is not permitted")
        .to_string();
    assert!(reason.contains("NOPERM"), "{reason}");
    assert_eq!(keys.listed().await, [""; 0]);
}
