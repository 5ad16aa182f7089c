use std::{
    future::{Ready, ready},
    task::{Context, Poll},
};

use actix_service::fn_factory;
use tokio::time::timeout;

use super::*;

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
    let end = timeout(Duration::from_mins(1), acceptor)
        .await
        .expect("the end of the server");
    assert_eq!(
        end.expect("no panic")
            .expect_err("a worker ends")
            .to_string(),
        "a worker thread has ended"
    );
}
