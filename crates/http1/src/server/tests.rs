use std::{
    future::{Ready, ready},
    task::{Context, Poll},
};

use actix_service::{fn_factory, fn_service};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::*;

/// Timeout for the end of a server or of a connection.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A service that panics outside of any request.
struct Panicking;

impl Service<Request> for Panicking {
    type Response = Response<BoxBody>;
    type Error = Response<BoxBody>;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        panic!("on purpose")
    }

    fn call(&self, _: Request) -> Self::Future {
        ready(Ok(Response::ok()))
    }
}

#[tokio::test]
async fn a_worker_thread_that_panics_is_an_error_of_its_server() {
    let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let app = || fn_factory::<_, (), _, _, _, ()>(|| ready(Ok(Panicking)));
    let server = HttpServer::start(listener, &ServerSettings::default(), app);

    let (_server, acceptor) = server.expect("a server");
    let end = timeout(TIMEOUT, acceptor)
        .await
        .expect("the end of the server");
    assert_eq!(
        end.expect("no panic")
            .expect_err("a worker ends")
            .to_string(),
        "a worker thread has ended"
    );
}

/// Responds to every request with 200.
async fn respond(_: Request) -> Result<Response<BoxBody>, Response<BoxBody>> {
    Ok(Response::ok())
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let app = || fn_service::<_, _, _, _, _, ()>(respond);
    let server = HttpServer::start(listener, &ServerSettings::default(), app);
    let (server, _acceptor) = server.expect("a server");
    let client = tokio::net::TcpStream::connect(server.address).await;
    let mut client = client.expect("a connection");
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(request).await.expect("a request");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(client.read_u8().await.expect("a response"));
    }

    drop(server);
    let end = timeout(TIMEOUT, client.read_u8()).await;
    let end = end.expect("the end of the connection").unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
}
