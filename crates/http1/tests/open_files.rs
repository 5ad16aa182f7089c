//! A process that cannot open any more files. It has no other test, because the limit is that of the process.

use actix_http::{Request, Response, body::BoxBody};
use actix_service::fn_service;
use animal_store_http1::{HttpListener, HttpServer, ServerSettings};
use rlimit::{Resource, setrlimit};

/// Responds to every request with 200.
async fn respond(_: Request) -> Result<Response<BoxBody>, Response<BoxBody>> {
    Ok(Response::ok())
}

#[test]
fn a_start_fails_with_the_reason_why_a_worker_has_no_runtime() {
    let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let hard = Resource::NOFILE.get_hard().expect("a limit");
    setrlimit(Resource::NOFILE, 0, hard).expect("a lower limit");

    let app = || fn_service::<_, _, _, _, _, ()>(respond);
    let started = HttpServer::start(listener, &ServerSettings::default(), app);

    let error = started.err().expect("no server");
    assert_eq!(error.to_string(), "Too many open files (os error 24)");
}
