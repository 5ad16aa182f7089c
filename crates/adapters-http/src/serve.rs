//! Serves the routes on a listener: workers, limits and timeouts.

#[cfg(test)]
mod tests;

use std::{
    fmt::Debug,
    future::ready,
    io,
    net::SocketAddr,
    rc::Rc,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use actix_http::{HttpService, Request, Response, body::MessageBody, error::DispatchError};
use actix_server::Server;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    App, Error,
    dev::AppConfig,
    middleware::{Condition, from_fn},
    rt::{
        self,
        net::{TcpStream, UnixStream},
    },
    web::Data,
};
use animal_store_app::CheckReadiness;
use governor::clock::DefaultClock;
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, watch};
use tracing::Level;

use crate::{
    auth::ClientLimits,
    cors::{self, AllowedOrigins},
    http_server::{HttpServer, WorkerEnd},
    limits::{Limits, MANAGEMENT_CONNECTIONS},
    metrics::{HttpCollector, ServerMetrics},
    middleware::{
        in_flight::{self, InFlight},
        key_shares::KeyShares,
        logged_requests::{LoggedRequests, RequestLogFilter},
        panics,
        request_log::{self, PeerAddress, RequestLog},
        trusted_proxies::TrustedProxies,
    },
    rate_limits::{self, RateLimits},
    routes,
    traces::TraceSettings,
    transport::{
        client_stream::ClientStream,
        connections::{Connections, Stage},
        counted_stream::CountedStream,
        listener::{HttpListener, ListeningSocket},
        request_stream::RequestStream,
        responding::respond,
        sliced_body::WRITE_BUFFER_BYTES,
        write_timeout::WriteTimeoutStream,
    },
    use_cases::UseCases,
};

/// Seconds: more than any timeout that the caller of [`HttpServerHandle::stop`](crate::HttpServerHandle::stop) may set.
const NEVER_FORCED: u64 = 24 * 60 * 60;

/// Resolution of the clock of actix. It is added to timeouts, which would otherwise elapse too early.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(500);

/// Maximum of the timeouts of the management listener. A probe takes one second at most.
const MANAGEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// How the API is served.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Limits and timeouts.
    pub limits: Limits,
    /// Origins whose pages may use the interface, too.
    pub origins: AllowedOrigins,
    /// Proxies that may report the addresses of their clients.
    pub proxies: TrustedProxies,
    /// Which requests have spans.
    pub traces: TraceSettings,
    /// Which requests have a line in the log.
    pub logged: RequestLogFilter,
}

/// Serves the interface. `use_cases` is called once in each worker. The metrics are added to `registry`.
///
/// # Errors
/// If the listener cannot be used.
///
/// # Panics
/// Outside of a runtime.
pub fn serve_api<F>(
    listener: HttpListener,
    settings: ApiSettings,
    registry: &mut Registry,
    use_cases: F,
) -> io::Result<(HttpServer, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let ApiSettings { limits, origins, proxies, traces, logged } = settings;
    let in_flight = InFlight::new(limits.max_in_flight);
    let metrics = Arc::new(ServerMetrics::default());
    let (counts, max_connections) = (Arc::clone(&metrics), limits.served_connections());
    let collector = HttpCollector { metrics: counts, in_flight: in_flight.clone(), max_connections };
    registry.sub_registry_with_prefix("http").register_collector(Box::new(collector));
    let rates = Arc::new(RateLimits::new(&limits, &DefaultClock::default()));
    tokio::spawn(rate_limits::evict_periodically(Arc::downgrade(&rates)));
    let app_data = (in_flight.clone(), limits.clone(), proxies, rates);
    let server = serve(listener, &limits, Level::INFO, logged, metrics, move |log| {
        let (in_flight, limits, proxies, rates) = app_data.clone();
        let shares = KeyShares::new(limits.max_in_flight_per_key_and_worker());
        // The middleware that is added last runs first.
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(in_flight.clone()))
            .app_data(Data::new(ClientLimits { shares, rates }))
            .app_data(limits)
            .app_data(proxies)
            .configure(routes::api)
            .wrap_fn(panics::catch)
            .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
            .wrap(Condition::new(!origins.is_empty(), origins.cors()))
            .wrap(Condition::new(!origins.is_empty(), from_fn(cors::respond_to_refused_preflight)))
            .wrap_fn(move |request, service| request_log::record(&log, traces, request, service))
    })?;
    Ok((server, in_flight))
}

/// Serves `/live`, `/ready` and `/metrics` with one worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_management(
    listener: HttpListener,
    limits: &Limits,
    readiness: &CheckReadiness,
    registry: Arc<Registry>,
) -> io::Result<HttpServer> {
    let limits = Limits {
        workers: 1,
        max_connections: MANAGEMENT_CONNECTIONS,
        head_timeout: limits.head_timeout.min(MANAGEMENT_TIMEOUT),
        body_timeout: limits.body_timeout.min(MANAGEMENT_TIMEOUT),
        keep_alive: limits.keep_alive.min(MANAGEMENT_TIMEOUT),
        // Longer than the others together.
        answer_timeout: limits.answer_timeout.min(4 * MANAGEMENT_TIMEOUT),
        ..limits.clone()
    };
    let (readiness, registry) = (readiness.clone(), Data::from(registry));
    // In no registry: the metrics describe the API listener.
    let metrics = Arc::default();
    let logged = RequestLogFilter::new(LoggedRequests::ALL);
    serve(listener, &limits, Level::DEBUG, logged, metrics, move |log| {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .app_data(registry.clone())
            .configure(routes::management)
            .wrap_fn(panics::catch)
            .wrap_fn(move |request, service| request_log::record(&log, TraceSettings::default(), request, service))
    })
}

fn serve<I, S, B>(
    listener: HttpListener,
    limits: &Limits,
    log_level: Level,
    logged: RequestLogFilter,
    metrics: Arc<ServerMetrics>,
    app: impl Fn(Rc<RequestLog>) -> I + Clone + Send + 'static,
) -> io::Result<HttpServer>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Response: Into<Response<B>>, Error = Error> + 'static,
    S::InitError: Debug,
    B: MessageBody + 'static,
{
    let workers = limits.running_workers();
    let Limits { head_timeout, body_timeout, keep_alive, answer_timeout, .. } = *limits;
    let limits = limits.clone();
    listener.prepare()?;
    let (stage, stage_receiver) = watch::channel(Stage::Serving);
    let (worker_end, ended) = mpsc::unbounded_channel();
    let is_draining = Arc::new(AtomicBool::new(false));
    let draining = Arc::clone(&is_draining);
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(limits.accepted_connections_per_worker())
        .shutdown_timeout(NEVER_FORCED)
        .disable_signals();
    let serve_streams = move || {
        let metrics = metrics.add_worker();
        let log = Rc::new(RequestLog { level: log_level, logged: logged.clone(), metrics: Arc::clone(&metrics) });
        let connections = Connections::new(&limits, workers, Rc::clone(&log), Arc::clone(&draining));
        let (following, worker_end) = (Rc::clone(&connections).follow(stage_receiver.clone()), worker_end.clone());
        rt::spawn(async {
            // The runtime of the worker drops its tasks.
            let _end = WorkerEnd(worker_end);
            following.await;
        });
        let admission = Rc::clone(&connections);
        let http = HttpService::build()
            .client_request_timeout(head_timeout + CLOCK_RESOLUTION)
            // The stream closes the connection itself.
            .client_disconnect_timeout(Duration::ZERO)
            .keep_alive(keep_alive + CLOCK_RESOLUTION)
            .h1_write_buffer_size(WRITE_BUFFER_BYTES)
            .on_connect_ext(|stream: &RequestStream<CountedStream<ClientStream>>, extensions| {
                if let Some(peer) = stream.connection().peer {
                    extensions.insert(PeerAddress::new(peer));
                }
                extensions.insert(Rc::clone(stream.connection()));
            })
            .h1(apply_fn_factory(map_config(app(log), |()| AppConfig::default()), move |request, service| {
                respond(request, service, &connections)
            }));
        fn_service(move |(stream, peer): (ClientStream, Option<SocketAddr>)| {
            let (connections, metrics) = (Rc::clone(&admission), Arc::clone(&metrics));
            async move {
                let stream = CountedStream::new(stream, metrics);
                let slot = connections.admit(peer).await;
                let stream = WriteTimeoutStream::new(stream, answer_timeout);
                Ok::<_, DispatchError>((RequestStream::new(stream, slot, body_timeout), peer))
            }
        })
        .and_then(http)
    };
    let server = match listener.try_clone_socket()? {
        ListeningSocket::Tcp(socket) => server.listen("http", socket, move || {
            fn_service(|stream: TcpStream| {
                let peer = stream.peer_addr().ok();
                let prepared = stream.set_nodelay(true).map_err(DispatchError::Io);
                ready(prepared.map(|()| (ClientStream::Tcp(stream), peer)))
            })
            .and_then(serve_streams())
        })?,
        ListeningSocket::Unix(socket) => server.listen_uds("http", socket, move || {
            fn_service(|stream: UnixStream| ready(Ok((ClientStream::Unix(stream), None)))).and_then(serve_streams())
        })?,
    };
    let listener = Arc::new(Mutex::new(Some(listener)));
    Ok(HttpServer { ended, server: server.run(), listener, is_draining, stage })
}
