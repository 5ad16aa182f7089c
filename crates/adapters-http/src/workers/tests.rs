use std::{
    future::{Ready, ready},
    net::TcpListener,
    task::{Context, Poll},
    time::Duration,
};

use actix_service::{Service, fn_factory_with_config};
use actix_web::body::BoxBody;
use tokio::time::timeout;

use super::*;
use crate::LoggedRequests;

/// A service that panics outside of any request.
struct Panicking;

impl Service<Request> for Panicking {
    type Response = Response<BoxBody>;
    type Error = Error;
    type Future = Ready<Result<Self::Response, Error>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        panic!("on purpose")
    }

    fn call(&self, _: Request) -> Self::Future {
        ready(Ok(Response::ok()))
    }
}

#[tokio::test]
async fn a_worker_thread_that_panics_is_an_error_of_its_server() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let settings = WorkerSettings {
        limits: Limits::default(),
        tls: None,
        log_level: Level::DEBUG,
        logged: RequestLogFilter::new(LoggedRequests::All),
        metrics: Arc::default(),
    };
    let app = |_| fn_factory_with_config(|_: AppConfig| ready(Ok::<_, ()>(Panicking)));
    let server = start_workers(HttpListener::new(listener), &settings, app).expect("a server");

    let end = timeout(Duration::from_secs(20), server.run()).await.expect("the end of the server");
    assert_eq!(end.expect_err("a panic").to_string(), "a worker thread has ended");
}
