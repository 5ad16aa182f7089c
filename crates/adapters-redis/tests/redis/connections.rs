//! Endpoints that work, and endpoints that must not.

use std::fs;

use animal_store_adapters_redis::{RedisApiKeyStore, RedisEndpoint, RedisEndpointError, RedisTls};
use animal_store_app::ports::{ApiKeyStore, StoreFailure};
use animal_store_test_servers::{Certificates, RedisServer};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    requests::{Accepted, Failed, Refused, becomes, changes_to, is_ready, use_token},
    setup::{Keys, TIMEOUT, endpoint, long_timeouts, settings},
};

/// Adds, uses and revokes a key.
async fn works(endpoint: RedisEndpoint) {
    let keys = Keys::over(endpoint, long_timeouts());
    let directory = keys.directory().await;
    assert!(is_ready(&directory).await, "{:?}", keys.store.list().await);
    let key = keys.add("key", "token").await;
    becomes(&directory, "token", Accepted).await;
    assert_eq!(use_token(&directory, "invented").await, Refused);
    keys.revoke(&key).await;
    changes_to(&directory, "token", Refused).await;
}

async fn does_not_work(endpoint: RedisEndpoint) {
    let directory = Keys::over(endpoint.clone(), settings("shop:")).directory().await;
    assert!(!is_ready(&directory).await);
    assert_eq!(use_token(&directory, "token").await, Failed);
    let list = RedisApiKeyStore::new(endpoint, "shop:", TIMEOUT).list().await;
    assert!(matches!(list, Err(StoreFailure::Unavailable(_))), "{list:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_works() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("unix://{}", server.socket().display());
    works(endpoint(&url)).await;
    works(endpoint(&format!("{url}?db=2&user=app&pass=secret"))).await;
    does_not_work(endpoint(&format!("{url}?db=2&user=app&pass=wrong"))).await;
    does_not_work(endpoint(&format!("{url}.elsewhere"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_and_passwords_work() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">s:e/c@r et", "~*", "&*", "+@all"]);
    works(endpoint(&format!("redis://app:s%3Ae%2Fc%40r%20et@localhost:{}", server.port()))).await;
    does_not_work(endpoint(&format!("redis://app:wrong@localhost:{}", server.port()))).await;
    server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    works(endpoint(&format!("redis://:secret@localhost:{}", server.port()))).await;
    does_not_work(endpoint(&server.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_have_separate_keys() {
    let server = RedisServer::start();
    let at = |database: &str| Keys::at(&format!("{}{database}", server.url()), long_timeouts());
    works(endpoint(&format!("{}/3", server.url()))).await;
    at("/3").add("key", "token").await;
    for (database, outcome) in [("/3", Accepted), ("", Refused), ("/0", Refused), ("/1", Refused)] {
        assert_eq!(use_token(&at(database).directory().await, "token").await, outcome, "{database}");
    }
    does_not_work(endpoint(&format!("{}/16", server.url()))).await;
}

fn read(path: &std::path::Path) -> String {
    fs::read_to_string(path).expect("a certificate")
}

fn tls(authority: Option<&Certificates>, client: Option<&Certificates>) -> RedisTls {
    RedisTls {
        authority: authority.map(|certificates| read(&certificates.authority)),
        client: client.map(|certificates| (read(&certificates.client), read(&certificates.client_key).into())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_works_only_with_the_right_certificates() {
    let server = RedisServer::with_tls();
    let other = RedisServer::with_tls();
    let (ours, theirs) = (server.certificates(), other.certificates());
    let at = |url: &str, tls| RedisEndpoint::parse(&url.into(), tls).expect("an endpoint");
    works(at(&server.url(), tls(Some(ours), Some(ours)))).await;

    for (authority, client) in [
        // Signed by another authority, or by none of the system's.
        (Some(theirs), Some(ours)),
        (None, Some(ours)),
        // The server does not accept the client.
        (Some(ours), Some(theirs)),
        (Some(ours), None),
    ] {
        does_not_work(at(&server.url(), tls(authority, client))).await;
    }
    // The certificate is for another name.
    let address = server.url().replace("localhost", "127.0.0.1");
    does_not_work(at(&address, tls(Some(ours), Some(ours)))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_refused_without_tls_or_if_they_are_not_valid() {
    let server = RedisServer::with_tls();
    let certificates = server.certificates();
    for url in ["redis://localhost", "unix:///run/redis.sock"] {
        for tls in [tls(Some(certificates), None), tls(None, Some(certificates))] {
            let error = RedisEndpoint::parse(&url.into(), tls);
            assert!(matches!(error, Err(RedisEndpointError::NoTls)), "{url}: {error:?}");
        }
    }
    let good = tls(Some(certificates), Some(certificates));
    let (certificate, key) = good.client.expect("a certificate");
    let authority = good.authority.expect("an authority");
    let foreign = read(&RedisServer::with_tls().certificates().client_key).into();
    let broken = "-----BEGIN CERTIFICATE-----\nhunter2=\n-----END CERTIFICATE-----\n".to_owned();
    let empty = "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n".to_owned();
    let refused = |authority: &str, certificate: &str, key: &SecretString| {
        let tls =
            RedisTls { authority: Some(authority.to_owned()), client: Some((certificate.to_owned(), key.clone())) };
        let error = RedisEndpoint::parse(&"rediss://localhost".into(), tls).expect_err("not valid");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        error
    };
    for text in ["hunter2", "", &broken, &empty, key.expose_secret()] {
        let error = refused(text, &certificate, &key);
        assert!(matches!(error, RedisEndpointError::Authority(_)), "{error:?}");
        let error = refused(&authority, text, &key);
        assert!(matches!(error, RedisEndpointError::Certificate(_)), "{error:?}");
    }
    for key in ["hunter2".into(), String::new().into(), certificate.clone().into(), foreign] {
        let error = refused(&authority, &certificate, &key);
        assert!(matches!(error, RedisEndpointError::PrivateKey(_)), "{error:?}");
    }
}
