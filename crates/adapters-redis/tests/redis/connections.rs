//! Endpoints that work, and endpoints that must not, with the reason for an operator: what happened, at which server,
//! and what to do.

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
};

use animal_store_adapters_redis::{RedisClientCertificate, RedisEndpointError};
use animal_store_test_servers::Certificates;
use secrecy::{ExposeSecret, SecretString};

use crate::prelude::*;

const WRONG_PASSWORD: &str =
    "refused the login of the user \"app\" (WRONGPASS); check the user and the password in the URL";

/// Adds, uses and revokes a key.
pub(crate) async fn works(endpoint: RedisEndpoint) {
    let keys = Keys::over(endpoint, long_timeouts());
    let directory = keys.directory().await;
    assert!(is_ready(&directory).await, "{:?}", keys.store.list().await);
    keys.add("key", "token").await;
    becomes(&directory, "token", Accepted).await;
    assert_eq!(use_token(&directory, "invented").await, Refused);
    keys.revoke("key").await;
    changes_to(&directory, "token", Refused).await;
}

pub(crate) async fn fails(endpoint: RedisEndpoint, reason: &str) {
    fails_with(endpoint, long_timeouts(), reason).await;
}

/// No request gets a key. The reason names the server and contains no password: here, each is `hunter2`.
pub(crate) async fn fails_with(endpoint: RedisEndpoint, settings: RedisSettings, reason: &str) {
    let address = endpoint.to_string();
    let store = RedisApiKeyStore::new(endpoint.clone(), "shop:", settings.timeout, 0);
    let error = store.list().await.expect_err(reason);
    let StoreFailure::Unavailable(cause) = &error else {
        panic!("{error:?}")
    };
    let cause = cause.to_string();
    assert!(
        cause.contains(&address) && cause.contains(reason),
        "{cause} instead of {reason}"
    );
    for hint in ["requires TLS", "tls_cert_file"] {
        assert_eq!(cause.contains(hint), reason.contains(hint), "{cause}");
    }
    assert!(
        !format!("{error:?} {:?}", error.source()).contains("hunter2"),
        "{error:?}"
    );

    let directory = Keys::over(endpoint, settings).directory().await;
    assert!(!is_ready(&directory).await);
    let cause = assert_fails(find(&directory, "token").await, UNAVAILABLE);
    let expected = format!("there is no connection to Redis at {address}");
    assert_eq!(cause, expected);
}

/// A server on which the user `app` may do everything.
fn server_with_user(password: &str) -> RedisServer {
    let server = RedisServer::start();
    server.run(&format!("ACL SETUSER app on >{password} ~* &* +@all"));
    server
}

#[tokio::test]
async fn a_unix_socket_works() {
    let server = server_with_user("secret");
    let url = format!("unix://{}", server.socket().display());
    works(endpoint(&url)).await;
    works(endpoint(&format!("{url}?db=2&user=app&pass=secret"))).await;
    fails(
        endpoint(&format!("{url}?db=2&user=app&pass=hunter2")),
        WRONG_PASSWORD,
    )
    .await;
    fails(
        endpoint(&format!("{url}.elsewhere?pass=hunter2")),
        "No such file",
    )
    .await;
}

#[tokio::test]
async fn users_passwords_and_databases_work() {
    let server = server_with_user("s:e/c@r+et");
    let at = |login: &str| endpoint(&format!("redis://{login}localhost:{}", server.port()));
    works(at("app:s%3Ae%2Fc%40r%2Bet@")).await;
    fails(at("app:hunter2@"), WRONG_PASSWORD).await;
    works(endpoint(&format!("{}/3", server.url()))).await;
    fails(
        endpoint(&format!("{}/16", server.url())),
        "DB index is out of range",
    )
    .await;
    Keys::at(&format!("{}/3", server.url()))
        .add("key", "token")
        .await;
    for (database, outcome) in [("/3", Accepted), ("", Refused), ("/0", Refused)] {
        let directory = Keys::at(&format!("{}{database}", server.url()))
            .directory()
            .await;
        assert_eq!(use_token(&directory, "token").await, outcome, "{database}");
    }
    server.run("CONFIG SET requirepass secret");
    works(at(":secret@")).await;
    fails(at(""), "requires a password, and the URL contains none").await;
    fails(
        endpoint("redis://app:hunter2@localhost:1"),
        "Connection refused",
    )
    .await;
}

/// Starts a server that responds to the first request of each connection, and closes it.
fn server_that_responds(response: &'static str) -> RedisEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(response.as_bytes());
        }
    });
    endpoint(&format!("redis://{address}"))
}

#[tokio::test]
async fn another_kind_of_server_is_not_taken_for_redis() {
    let http = server_that_responds("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    fails(http, "does not respond like Redis: check the address").await;
    let old =
        server_that_responds("-ERR unknown command `HELLO`\r\n-ERR unknown\r\n-ERR unknown\r\n");
    fails(
        old,
        "does not support RESP3: version 6.0 or later is required",
    )
    .await;
}

/// Starts a master that closes each connection inside the response to the first command of its client.
fn server_that_is_lost() -> RedisEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("a connection");
            thread::spawn(move || respond_until_lost(connection));
        }
    });
    endpoint(&format!("redis://{address}"))
}

fn respond_until_lost(mut connection: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = connection.read(&mut buffer) {
        let request = String::from_utf8_lossy(&buffer[..length]);
        let mut response = "%1\r\n+role\r\n+master\r\n".repeat(request.matches("HELLO").count());
        response += &"+OK\r\n".repeat(request.matches("SETINFO").count());
        if response.is_empty() {
            let _ = connection.write_all(b"*2\r\n$5\r\nab");
            return;
        }
        let _ = connection.write_all(response.as_bytes());
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_inside_a_response_is_neither_invalid_data_nor_a_wrong_address() {
    for server in [
        server_that_responds("%7\r\n$6\r\nserver\r\n$5\r\nre"),
        server_that_is_lost(),
    ] {
        fails(server, "closed the connection").await;
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a certificate")
}

pub(crate) fn tls(authority: Option<&Certificates>, client: Option<&Certificates>) -> RedisTls {
    RedisTls {
        authority: authority.map(|certificates| read(&certificates.authority)),
        client: client.map(|certificates| RedisClientCertificate {
            certificate: read(&certificates.client),
            private_key: read(&certificates.client_key).into(),
        }),
    }
}

#[tokio::test]
async fn tls_works_only_with_the_right_certificates() {
    const SERVER: &str = "; check keys.redis.tls_ca_file and the host in the URL";
    const CLIENT: &str = "; check keys.redis.tls_cert_file";
    let [server, other] = [(); 2].map(|()| RedisServer::with_tls());
    let [ours, theirs] = [&server, &other].map(RedisServer::certificates);
    let at = |url: &str, tls| RedisEndpoint::parse(&url.into(), tls).expect("an endpoint");
    works(at(&server.url(), tls(Some(ours), Some(ours)))).await;

    for (authority, client, reason) in [
        // Signed by another authority, or by none of the system's.
        (Some(theirs), Some(ours), SERVER),
        (None, Some(ours), SERVER),
        // The server does not accept the client.
        (Some(ours), Some(theirs), CLIENT),
        (Some(ours), None, CLIENT),
    ] {
        fails(at(&server.url(), tls(authority, client)), reason).await;
    }
    // The certificate is for another name.
    let address = server.url().replace("localhost", "127.0.0.1");
    fails(at(&address, tls(Some(ours), Some(ours))), SERVER).await;

    let to_encrypted = endpoint(&server.url().replace("rediss", "redis"));
    fails(
        to_encrypted,
        "; if it requires TLS, the URL must begin with rediss://; otherwise see whether its maxclients is reached",
    )
    .await;
    let plain = RedisServer::start();
    let url = plain.url().replace("redis", "rediss");
    let to_plain = at(&url, tls(Some(ours), None));
    fails_with(
        to_plain,
        settings(),
        "; if it does not use TLS, the URL must begin with redis://",
    )
    .await;
}

#[tokio::test]
async fn certificates_are_refused_without_tls_or_if_they_are_not_valid() {
    let server = RedisServer::with_tls();
    let certificates = server.certificates();
    for url in ["redis://localhost", "unix:///run/redis.sock"] {
        for tls in [tls(Some(certificates), None), tls(None, Some(certificates))] {
            let error = RedisEndpoint::parse(&url.into(), tls);
            assert!(
                matches!(error, Err(RedisEndpointError::NoTls)),
                "{url}: {error:?}"
            );
        }
    }
    let good = tls(Some(certificates), Some(certificates));
    let client = good.client.expect("a certificate");
    let certificate = client.certificate;
    let key = client.private_key;
    let authority = good.authority.expect("an authority");
    let foreign = read(&RedisServer::with_tls().certificates().client_key).into();
    let broken = "-----BEGIN CERTIFICATE-----\nhunter2=\n-----END CERTIFICATE-----\n".to_owned();
    let empty = "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n".to_owned();
    let refused = |authority: &str, certificate: &str, key: &SecretString| {
        let tls = RedisTls {
            authority: Some(authority.to_owned()),
            client: Some(RedisClientCertificate {
                certificate: certificate.to_owned(),
                private_key: key.clone(),
            }),
        };
        let error = RedisEndpoint::parse(&"rediss://localhost".into(), tls).expect_err("not valid");
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
        error
    };
    for text in ["hunter2", "", &broken, &empty, key.expose_secret()] {
        let error = refused(text, &certificate, &key);
        assert!(
            matches!(error, RedisEndpointError::Authority(_)),
            "{error:?}"
        );
        let error = refused(&authority, text, &key);
        assert!(
            matches!(error, RedisEndpointError::Certificate(_)),
            "{error:?}"
        );
    }
    for key in [
        "hunter2".into(),
        String::new().into(),
        certificate.clone().into(),
        foreign,
    ] {
        let error = refused(&authority, &certificate, &key);
        assert!(
            matches!(error, RedisEndpointError::PrivateKey(_)),
            "{error:?}"
        );
    }
}
