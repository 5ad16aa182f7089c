//! Serves the routes on a listener: workers, limits and timeouts.

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
use tracing::Level;

use crate::{
    cors::{self, AllowedOrigins},
    limits::Limits,
    middleware::{
        in_flight::{self, InFlight},
        panics, request_log,
    },
    routes,
    transport::{
        pipelining::{self, DRAIN_TIMEOUT, RequestStream},
        write_timeout::WriteTimeoutStream,
    },
    use_cases::UseCases,
};

/// Seconds: more than any timeout that the caller of [`HttpServerHandle::stop`] may set.
const NEVER_FORCED: u64 = 24 * 60 * 60;

/// Resolution of the clock of actix. It is added to timeouts, which would otherwise elapse too early.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(500);

const MANAGEMENT_CONNECTIONS: usize = 100;

/// A server. Its listener accepts connections as soon as the server is created.
pub struct HttpServer(Server);

/// Stops an [`HttpServer`].
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
    /// From now on, every response says `Connection: close`.
    pub fn announce_close(&self) {}

    /// Stops accepting. Resolves when every connection is closed.
    pub async fn stop(&self, _idle_grace: Duration) {
        self.0.stop(true).await;
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.0.stop(false).await;
    }
}

/// Serves the interface. Pages of `origins` may use it, too. `use_cases` is called once in each worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_api<F>(
    listener: TcpListener,
    limits: &Limits,
    origins: AllowedOrigins,
    use_cases: F,
) -> io::Result<(HttpServer, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let in_flight = InFlight::new(limits.max_in_flight);
    let app_data = (in_flight.clone(), limits.clone());
    let server = serve(listener, limits, move || {
        let (in_flight, limits) = app_data.clone();
        // The middleware that is added last runs first.
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(in_flight))
            .app_data(limits)
            .configure(routes::api)
            .wrap(from_fn(panics::catch))
            .wrap(from_fn(in_flight::limit))
            .wrap(Condition::new(!origins.is_empty(), origins.cors()))
            .wrap(Condition::new(!origins.is_empty(), from_fn(cors::respond_to_refused_preflight)))
            .wrap(from_fn(|request, next| request_log::log(Level::INFO, request, next)))
    })?;
    Ok((server, in_flight))
}

/// Serves `/live` and `/ready` with one worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_management(listener: TcpListener, limits: &Limits, readiness: &CheckReadiness) -> io::Result<HttpServer> {
    let limits = Limits { workers: 1, max_connections: MANAGEMENT_CONNECTIONS, ..limits.clone() };
    let readiness = readiness.clone();
    serve(listener, &limits, move || {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .configure(routes::management)
            .wrap(from_fn(panics::catch))
            .wrap(from_fn(|request, next| request_log::log(Level::DEBUG, request, next)))
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
            .client_request_timeout(head_timeout + CLOCK_RESOLUTION)
            .client_disconnect_timeout(DRAIN_TIMEOUT)
            .keep_alive(keep_alive + CLOCK_RESOLUTION)
            .on_connect_ext(|connection: &WriteTimeoutStream<RequestStream<TcpStream>>, extensions| {
                extensions.insert(connection.get_ref().progress());
            })
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            .h1(apply_fn_factory(map_config(app(), |()| AppConfig::default()), pipelining::respond));
        fn_service(move |stream: TcpStream| async move {
            stream.set_nodelay(true).map_err(DispatchError::Io)?;
            let peer = stream.peer_addr().ok();
            Ok::<_, DispatchError>((WriteTimeoutStream::new(RequestStream::new(stream), answer_timeout), peer))
        })
        .and_then(http)
    })?;
    Ok(HttpServer(server.run()))
}
