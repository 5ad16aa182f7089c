//! Puts the routes behind a listener: workers, bounds and deadlines.

use std::{fmt::Debug, io, net::TcpListener, time::Duration};

use actix_http::{HttpService, Request, Response, body::MessageBody, error::DispatchError};
use actix_server::{Server, ServerHandle};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    App, Error,
    dev::AppConfig,
    middleware::{Condition, from_fn},
    rt::net::TcpStream,
    web::Data,
};
use animal_store_app::CheckReadiness;

use crate::{
    UseCases,
    body::BodyLimits,
    connection::Connection,
    cors::{self, AllowedOrigins},
    in_flight::{self, InFlight, MaxInFlight},
    panics, request_log, routes,
    turns::{self, LINGER, Turns},
};

/// In seconds: beyond every deadline that the caller of [`ServerHandle::stop`](HttpServerHandle::stop) may set.
const NEVER_FORCED: u64 = 24 * 60 * 60;

/// actix counts from a clock that it sets twice a second: without this, its deadlines may come that much too early.
const CLOCK_STEP: Duration = Duration::from_millis(500);

const MANAGEMENT_CONNECTIONS: usize = 100;

/// How much a client may ask of the server, and how long it may take over it.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads that answer requests.
    pub workers: usize,
    /// Connections at a time; those beyond wait in the listener's backlog.
    pub max_connections: usize,
    /// Requests being answered at a time; those beyond are answered 503.
    pub max_in_flight: usize,
    /// Bytes of a request body.
    pub max_body_bytes: usize,
    /// For the head of a connection's first request.
    pub head_timeout: Duration,
    /// For a request's body.
    pub body_timeout: Duration,
    /// For a connection between two requests.
    pub keep_alive: Duration,
    /// For everything else: a connection is closed this long after the last byte that was written to it.
    pub answer_timeout: Duration,
}

/// A server that accepts connections from its creation on.
pub struct HttpServer(Server);

/// Stops an [`HttpServer`].
#[derive(Clone)]
pub struct HttpServerHandle(ServerHandle);

impl HttpServer {
    /// Returns a handle that stops the server.
    pub fn handle(&self) -> HttpServerHandle {
        HttpServerHandle(self.0.handle())
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    /// If the server fails.
    pub async fn run(self) -> io::Result<()> {
        self.0.await
    }
}

impl HttpServerHandle {
    /// Stops the server. A graceful stop resolves after the requests in flight are answered.
    pub async fn stop(&self, graceful: bool) {
        self.0.stop(graceful).await;
    }
}

/// Serves the interface, to pages of `origins` too. `use_cases` is called once in each worker.
///
/// # Errors
/// Where the listener cannot be used.
pub fn serve_api<F>(
    listener: TcpListener,
    limits: &Limits,
    origins: AllowedOrigins,
    use_cases: F,
) -> io::Result<(HttpServer, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let in_flight = InFlight::default();
    let max_in_flight = MaxInFlight { in_flight: in_flight.clone(), most: limits.max_in_flight };
    let body_limits = BodyLimits { max_bytes: limits.max_body_bytes, timeout: limits.body_timeout };
    let server = serve(listener, limits, move || {
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(max_in_flight.clone()))
            .app_data(body_limits)
            .configure(routes::api)
            .wrap(from_fn(panics::catch))
            .wrap(from_fn(in_flight::admit))
            .wrap(Condition::new(origins.are_some(), origins.cors()))
            .wrap(Condition::new(origins.are_some(), from_fn(cors::answer_refusals)))
            .wrap(from_fn(request_log::log))
    })?;
    Ok((server, in_flight))
}

/// Serves what operators ask. It needs few connections and one worker.
///
/// # Errors
/// Where the listener cannot be used.
pub fn serve_management(listener: TcpListener, limits: &Limits, readiness: &CheckReadiness) -> io::Result<HttpServer> {
    let limits = Limits { workers: 1, max_connections: MANAGEMENT_CONNECTIONS, ..limits.clone() };
    let readiness = readiness.clone();
    serve(listener, &limits, move || {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .configure(routes::management)
            .wrap(from_fn(panics::catch))
            .wrap(from_fn(request_log::log_quietly))
    })
}

fn serve<I, S, B>(
    listener: TcpListener,
    limits: &Limits,
    app: impl Fn() -> I + Clone + Send + 'static,
) -> io::Result<HttpServer>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Response: Into<Response<B>>, Error = Error> + 'static,
    S::InitError: Debug,
    B: MessageBody + 'static,
{
    // Each worker has an equal share of the connections, and at least one.
    let workers = limits.workers.min(limits.max_connections);
    let Limits { head_timeout, keep_alive, answer_timeout, .. } = *limits;
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(limits.max_connections / workers)
        .shutdown_timeout(NEVER_FORCED)
        .disable_signals();
    let shutdown = server.graceful_shutdown_signal();

    let server = server.listen("http", listener, move || {
        let shutdown = shutdown.clone();
        let http = HttpService::build()
            .client_request_timeout(head_timeout + CLOCK_STEP)
            .client_disconnect_timeout(LINGER)
            .keep_alive(keep_alive + CLOCK_STEP)
            .on_connect_ext(|connection: &Connection<Turns<TcpStream>>, extensions| {
                extensions.insert(connection.get_ref().turn());
            })
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            .h1(apply_fn_factory(map_config(app(), |()| AppConfig::default()), turns::answer_in_turn));
        fn_service(move |stream: TcpStream| async move {
            stream.set_nodelay(true).map_err(DispatchError::Io)?;
            let peer = stream.peer_addr().ok();
            Ok::<_, DispatchError>((Connection::new(Turns::new(stream), answer_timeout), peer))
        })
        .and_then(http)
    })?;
    Ok(HttpServer(server.run()))
}
