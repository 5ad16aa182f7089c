//! Every way to reach a server, and ways that must not work.

use std::fs;

use animal_store_adapters_redis::{RedisApiKeyStore, RedisEndpoint, RedisEndpointError, Tls};
use animal_store_app::ports::{ApiKeyStore, ApiKeyStoreError};
use animal_store_test_servers::{Certificates, RedisServer};

use crate::{
    keys::{Keys, TIMEOUT, endpoint, settings},
    uses::{Accepted, Failed, Refused, ask, comes_to, is_ready, soon_comes_to},
};

/// A key is made, used and revoked.
async fn works(endpoint: RedisEndpoint) {
    let keys = Keys::over(endpoint, settings("shop:"));
    let directory = keys.directory().await;
    assert!(is_ready(&directory).await, "{:?}", keys.store.list().await);
    let key = keys.add("key", "token").await;
    comes_to(&directory, "token", Accepted).await;
    assert_eq!(ask(&directory, "invented").await, Refused);
    keys.revoke(&key).await;
    soon_comes_to(&directory, "token", Refused).await;
}

async fn does_not_work(endpoint: RedisEndpoint) {
    let directory = Keys::over(endpoint.clone(), settings("shop:")).directory().await;
    assert!(!is_ready(&directory).await);
    assert_eq!(ask(&directory, "token").await, Failed);
    let list = RedisApiKeyStore::new(endpoint, "shop:", TIMEOUT).list().await;
    assert!(matches!(list, Err(ApiKeyStoreError::Unavailable(_))), "{list:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tcp() {
    let server = RedisServer::start();
    works(endpoint(&server.url())).await;
    works(endpoint(&format!("redis://127.0.0.1:{}/", server.port()))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_unix_socket() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("unix://{}", server.socket().display());
    works(endpoint(&url)).await;
    works(endpoint(&format!("{url}?db=2&user=app&pass=secret"))).await;
    does_not_work(endpoint(&format!("{url}?db=2&user=app&pass=wrong"))).await;
    does_not_work(endpoint(&format!("{url}.elsewhere"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_a_user_with_a_password() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">s:e/c@r et", "~*", "&*", "+@all"]);
    works(endpoint(&format!("redis://app:s%3Ae%2Fc%40r%20et@localhost:{}", server.port()))).await;
    server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    works(endpoint(&format!("redis://:secret@localhost:{}", server.port()))).await;
    does_not_work(endpoint(&server.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_one_database_are_not_those_of_another() {
    let server = RedisServer::start();
    let at = |database: &str| Keys::at(&format!("{}{database}", server.url()), settings("shop:"));
    works(endpoint(&format!("{}/3", server.url()))).await;
    at("/3").add("key", "token").await;
    for (database, outcome) in [("/3", Accepted), ("", Refused), ("/0", Refused), ("/1", Refused)] {
        assert_eq!(ask(&at(database).directory().await, "token").await, outcome, "{database}");
    }
    does_not_work(endpoint(&format!("{}/16", server.url()))).await;
}

fn read(path: &std::path::Path) -> String {
    fs::read_to_string(path).expect("a certificate")
}

fn tls(authority: Option<&Certificates>, client: Option<&Certificates>) -> Tls {
    Tls {
        authority: authority.map(|certificates| read(&certificates.authority)),
        client: client.map(|certificates| (read(&certificates.client), read(&certificates.client_key).into())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_where_each_side_knows_the_other() {
    let server = RedisServer::with_tls();
    let other = RedisServer::with_tls();
    let (ours, theirs) = (server.certificates(), other.certificates());
    let at = |url: &str, tls| RedisEndpoint::new(&url.into(), tls).expect("an endpoint");
    works(at(&server.url(), tls(Some(ours), Some(ours)))).await;

    for (authority, client) in [
        // Of another authority, or of none that the system knows.
        (Some(theirs), Some(ours)),
        (None, Some(ours)),
        // A client that the server does not know.
        (Some(ours), Some(theirs)),
        (Some(ours), None),
    ] {
        does_not_work(at(&server.url(), tls(authority, client))).await;
    }
    // The certificate is not one of this name.
    let address = server.url().replace("localhost", "127.0.0.1");
    does_not_work(at(&address, tls(Some(ours), Some(ours)))).await;
    // In clear to a server that speaks TLS, and the other way about.
    does_not_work(endpoint(&server.url().replace("rediss", "redis"))).await;
    let plain = RedisServer::start();
    does_not_work(at(&plain.url().replace("redis", "rediss"), tls(Some(ours), Some(ours)))).await;
}

#[test]
fn what_is_no_address_of_redis_is_refused_without_the_password() {
    for url in [
        "",
        "hunter2",
        "localhost:6379",
        "app:hunter2@localhost",
        "http://app:hunter2@localhost",
        "redis//app:hunter2@localhost",
        "redis://app:hunter2@",
        "redis://app:hunter2@localhost:99999",
        "redis://app:hunter2@localhost:port",
        "redis://app:hunter2@localhost/database",
        "redis://app:hunter2%FF@localhost",
        "unix://?pass=hunter2",
    ] {
        let error = RedisEndpoint::new(&url.into(), Tls::default()).expect_err(url);
        assert!(matches!(error, RedisEndpointError::Url), "{url}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn an_endpoint_shows_its_address_and_no_password() {
    let shown = |url: &str| {
        let endpoint = endpoint(url);
        format!("{endpoint} {endpoint:?}")
    };
    assert_eq!(shown("redis://app:hunter2@localhost:1234/3"), "localhost:1234 RedisEndpoint(localhost:1234)");
    let socket = shown("unix:///run/redis.sock?user=app&pass=hunter2");
    assert_eq!(socket, "/run/redis.sock RedisEndpoint(/run/redis.sock)");
}

#[test]
fn tls_that_does_not_look_at_the_certificate_is_refused() {
    let error = RedisEndpoint::new(&"rediss://app:hunter2@localhost/#insecure".into(), Tls::default());
    assert!(matches!(error, Err(RedisEndpointError::Insecure)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_refused_where_there_is_no_tls_or_where_they_are_none() {
    let server = RedisServer::with_tls();
    let certificates = server.certificates();
    for url in ["redis://localhost", "unix:///run/redis.sock"] {
        for tls in [tls(Some(certificates), None), tls(None, Some(certificates))] {
            let error = RedisEndpoint::new(&url.into(), tls);
            assert!(matches!(error, Err(RedisEndpointError::NoTls)), "{url}: {error:?}");
        }
    }
    let good = tls(Some(certificates), Some(certificates));
    let (certificate, key) = good.client.expect("a certificate");
    let authority = good.authority.expect("an authority");
    for (authority, certificate, key) in [
        ("hunter2".to_owned(), certificate.clone(), key.clone()),
        (authority.clone(), "hunter2".to_owned(), key),
        (authority, certificate, "hunter2".into()),
    ] {
        let tls = Tls { authority: Some(authority), client: Some((certificate, key)) };
        let error = RedisEndpoint::new(&"rediss://localhost".into(), tls).expect_err("they are none");
        assert!(matches!(error, RedisEndpointError::Certificates(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
