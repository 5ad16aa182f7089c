//! Messages for operators: what happened, at which server, and what to do.

use std::{
    error::Error,
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use animal_store_adapters_redis::{RedisApiKeyStore, RedisEndpoint, RedisTls};
use animal_store_app::ports::{ApiKeyStore, StoreFailure};
use animal_store_test_servers::RedisServer;

use crate::setup::{Keys, MARGIN, TIMEOUT, endpoint, find, long_timeouts};

/// Returns why the store at this endpoint is unavailable.
async fn cause(endpoint: RedisEndpoint) -> String {
    cause_within(endpoint, MARGIN).await
}

async fn cause_within(endpoint: RedisEndpoint, timeout: Duration) -> String {
    let error = RedisApiKeyStore::new(endpoint, "shop:", timeout).list().await.expect_err("unavailable");
    assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
    let cause = error.source().expect("a cause").to_string();
    assert!(!format!("{error:?} {cause}").contains("hunter2"), "{error:?}");
    cause
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_to_connect_names_the_address() {
    let refused = cause(endpoint("redis://app:hunter2@localhost:1")).await;
    assert!(refused.starts_with("Redis at localhost:1: Connection refused"), "{refused}");
    let missing = cause(endpoint("unix:///missing.sock?pass=hunter2")).await;
    assert!(missing.starts_with("Redis at /missing.sock: No such file"), "{missing}");

    let directory = Keys::at("redis://localhost:1", long_timeouts()).directory().await;
    match find(&directory, "token").await {
        Err(StoreFailure::Unavailable(cause)) => {
            assert_eq!(cause.to_string(), "there is no connection to Redis at localhost:1");
        }
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_login_names_the_user() {
    let server = RedisServer::start();
    let address = format!("localhost:{}", server.port());
    let advice = "check the user and the password in the URL";
    assert_eq!(
        cause(endpoint(&format!("redis://app:hunter2@{address}"))).await,
        format!("Redis at {address} refused the login of the user \"app\" (WRONGPASS); {advice}")
    );
    server.command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    assert_eq!(
        cause(endpoint(&server.url())).await,
        format!("Redis at {address} requires a password, and the URL contains none")
    );
    let database = cause(endpoint(&format!("redis://:hunter2@{address}/99"))).await;
    assert_eq!(database, format!("Redis at {address}: DB index is out of range"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_names_the_user_and_the_command_or_the_names() {
    let server = RedisServer::start();
    let address = format!("localhost:{}", server.port());
    let app = |database: &str| endpoint(&format!("redis://app:hunter2@{address}{database}"));
    server.command(&["ACL", "SETUSER", "app", "on", ">hunter2", "~*", "+@all"]);
    let directory = Keys::over(app(""), long_timeouts()).directory().await;
    for command in ["multi", "exec", "watch", "hgetall", "select"] {
        server.command(&["ACL", "SETUSER", "app", &format!("-{command}")]);
        let cause = cause(app("/1")).await;
        let start = format!("Redis at {address} refused a command of the user \"app\": ");
        assert!(cause.starts_with(&start) && cause.contains(&format!("'{command}'")), "{cause}");
        server.command(&["ACL", "SETUSER", "app", "+@all"]);
    }
    server.command(&["ACL", "SETUSER", "app", "-hmget"]);
    match find(&directory, "token").await {
        Err(StoreFailure::Unavailable(cause)) => {
            let cause = cause.to_string();
            assert!(cause.contains("of the user \"app\": ") && cause.contains("'hmget'"), "{cause}");
        }
        outcome => panic!("{outcome:?}"),
    }
    server.command(&["ACL", "SETUSER", "app", "resetkeys", "~store:*"]);
    let names = cause(app("")).await;
    let start = format!("Redis at {address} refused the user \"app\" access to the names shop:v1:*: NOPERM");
    assert!(names.starts_with(&start), "{names}");
}

/// Starts a server that responds to the first request of each connection, and closes it.
fn server_that_responds(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(response.as_bytes());
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_kind_of_server_is_not_taken_for_redis() {
    let http = server_that_responds("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let message = cause(endpoint(&format!("redis://{http}"))).await;
    assert_eq!(message, format!("the server at {http} does not respond like Redis: check the address"));
    let old = server_that_responds("-ERR unknown command `HELLO`\r\n-ERR unknown\r\n-ERR unknown\r\n");
    let message = cause(endpoint(&format!("redis://{old}"))).await;
    assert_eq!(message, format!("Redis at {old} does not support RESP3: version 6.0 or later is required"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_tls_says_what_to_check() {
    let (plain, encrypted) = (RedisServer::start(), RedisServer::with_tls());
    let authority = std::fs::read_to_string(&encrypted.certificates().authority).expect("a certificate");
    let tls = |url: &str, authority: Option<&String>| {
        RedisEndpoint::parse(&url.into(), RedisTls { authority: authority.cloned(), client: None })
            .expect("an endpoint")
    };
    let to_plain = tls(&plain.url().replace("redis", "rediss"), None);
    let to_encrypted = endpoint(&encrypted.url().replace("rediss", "redis"));
    for (endpoint, timeout, advice) in [
        (tls(&encrypted.url(), None), MARGIN, "; check keys.redis.tls_ca_file and the host in the URL"),
        (tls(&encrypted.url(), Some(&authority)), MARGIN, "; check keys.redis.tls_cert_file"),
        (to_plain, TIMEOUT, "; if it does not use TLS, the URL must begin with redis://"),
        (to_encrypted, MARGIN, "; if it requires TLS, the URL must begin with rediss://"),
    ] {
        let address = endpoint.to_string();
        let message = cause_within(endpoint, timeout).await;
        assert!(message.starts_with(&format!("Redis at {address}")) && message.ends_with(advice), "{message}");
    }
}
