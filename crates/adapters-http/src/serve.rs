//! Serves the routes on a listener: workers, limits and timeouts.

use std::{
    fmt::Debug,
    io,
    net::TcpListener,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_http::{HttpService, Request, Response, body::MessageBody, error::DispatchError};
use actix_server::{Server, ServerHandle};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    App, Error,
    dev::AppConfig,
    middleware::{Condition, from_fn},
    rt::{self, net::TcpStream},
    web::Data,
};
use animal_store_app::CheckReadiness;
use tokio::{sync::watch, time::sleep};
use tracing::Level;

use crate::{
    cors::{self, AllowedOrigins},
    limits::{Limits, MANAGEMENT_CONNECTIONS, MAX_WAITING},
    middleware::{
        in_flight::{self, InFlight},
        key_shares::KeyShares,
        panics,
        request_log::{self, PeerAddress},
        trusted_proxies::TrustedProxies,
    },
    routes,
    transport::{
        connections::{Connections, Stage},
        listener::{self, ACCEPT_TIME, ignore_new_connections},
        request_stream::RequestStream,
        responding::respond,
        sliced_body::WRITE_BUFFER_BYTES,
        write_timeout::WriteTimeoutStream,
    },
    use_cases::UseCases,
};

/// Seconds: more than any timeout that the caller of [`HttpServerHandle::stop`] may set.
const NEVER_FORCED: u64 = 24 * 60 * 60;

/// Resolution of the clock of actix. It is added to timeouts, which would otherwise elapse too early.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(500);

/// Maximum of the timeouts of the management listener. A probe takes one second at most.
const MANAGEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server. Its listener accepts connections as soon as the server is created.
pub struct HttpServer {
    server: Server,
    listener: SharedListener,
    is_draining: Arc<AtomicBool>,
    stage: watch::Sender<Stage>,
}

/// Stops an [`HttpServer`].
pub struct HttpServerHandle {
    server: ServerHandle,
    listener: SharedListener,
    is_draining: Arc<AtomicBool>,
    stage: watch::Sender<Stage>,
}

/// The listener until the server stops: the kernel accepts connections until its last handle is closed.
type SharedListener = Arc<Mutex<Option<TcpListener>>>;

impl HttpServer {
    /// Returns a handle that stops the server.
    pub fn handle(&self) -> HttpServerHandle {
        let (listener, is_draining) = (Arc::clone(&self.listener), Arc::clone(&self.is_draining));
        HttpServerHandle { server: self.server.handle(), listener, is_draining, stage: self.stage.clone() }
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    /// If the server fails.
    pub async fn run(self) -> io::Result<()> {
        self.server.await
    }
}

impl HttpServerHandle {
    /// From now on, every response says `Connection: close`.
    pub fn announce_close(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Stops accepting, and resolves when every connection is closed. A connection is closed after its response, which
    /// says `Connection: close`, or once it was idle for `idle_grace`.
    pub async fn stop(&self, idle_grace: Duration) {
        self.announce_close();
        self.stage.send_replace(Stage::Stopping { idle_grace });
        let listener = self.listener.lock().ok().and_then(|mut listener| listener.take());
        if let Some(listener) = listener {
            if let Err(error) = ignore_new_connections(&listener) {
                tracing::debug!(%error, "connections that are being opened may be reset");
            }
            drop(listener);
            sleep(ACCEPT_TIME).await;
        }
        self.server.stop(true).await;
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.stage.send_replace(Stage::Aborting);
        self.server.stop(false).await;
    }
}

/// Serves the interface. Pages of `origins` may use it, too. `proxies` may report the addresses of their clients for
/// the log. `use_cases` is called once in each worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_api<F>(
    listener: TcpListener,
    limits: &Limits,
    origins: AllowedOrigins,
    proxies: TrustedProxies,
    use_cases: F,
) -> io::Result<(HttpServer, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let in_flight = InFlight::new(limits.max_in_flight);
    let app_data = (in_flight.clone(), limits.clone(), proxies);
    let server = serve(listener, limits, Level::INFO, move || {
        let (in_flight, limits, proxies) = app_data.clone();
        let key_shares = KeyShares::new(limits.max_in_flight_per_key_and_worker());
        // The middleware that is added last runs first.
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(in_flight.clone()))
            .app_data(Data::new(key_shares))
            .app_data(limits)
            .app_data(proxies)
            .configure(routes::api)
            .wrap_fn(panics::catch)
            .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
            .wrap(Condition::new(!origins.is_empty(), origins.cors()))
            .wrap(Condition::new(!origins.is_empty(), from_fn(cors::respond_to_refused_preflight)))
            .wrap_fn(|request, service| request_log::log(Level::INFO, request, service))
    })?;
    Ok((server, in_flight))
}

/// Serves `/live` and `/ready` with one worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_management(listener: TcpListener, limits: &Limits, readiness: &CheckReadiness) -> io::Result<HttpServer> {
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
    let readiness = readiness.clone();
    serve(listener, &limits, Level::DEBUG, move || {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .configure(routes::management)
            .wrap_fn(panics::catch)
            .wrap_fn(|request, service| request_log::log(Level::DEBUG, request, service))
    })
}

fn serve<I, S, B>(
    listener: TcpListener,
    limits: &Limits,
    log_level: Level,
    app: impl Fn() -> I + Clone + Send + 'static,
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
    listener::prepare(&listener)?;
    let (stage, stage_receiver) = watch::channel(Stage::Serving);
    let is_draining = Arc::new(AtomicBool::new(false));
    let draining = Arc::clone(&is_draining);
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(limits.max_connections / workers + MAX_WAITING)
        .shutdown_timeout(NEVER_FORCED)
        .disable_signals();
    let server = server.listen("http", listener.try_clone()?, move || {
        let connections = Connections::new(&limits, workers, log_level, Arc::clone(&draining));
        rt::spawn(Rc::clone(&connections).follow(stage_receiver.clone()));
        let admission = Rc::clone(&connections);
        let http = HttpService::build()
            .client_request_timeout(head_timeout + CLOCK_RESOLUTION)
            // The stream closes the connection itself.
            .client_disconnect_timeout(Duration::ZERO)
            .keep_alive(keep_alive + CLOCK_RESOLUTION)
            .h1_write_buffer_size(WRITE_BUFFER_BYTES)
            .on_connect_ext(|stream: &RequestStream<TcpStream>, extensions| {
                if let Some(peer) = stream.connection().peer {
                    extensions.insert(PeerAddress::new(peer));
                }
                extensions.insert(Rc::clone(stream.connection()));
            })
            .h1(apply_fn_factory(map_config(app(), |()| AppConfig::default()), move |request, service| {
                respond(request, service, &connections)
            }));
        fn_service(move |stream: TcpStream| {
            let connections = Rc::clone(&admission);
            async move {
                stream.set_nodelay(true).map_err(DispatchError::Io)?;
                let peer = stream.peer_addr().ok();
                let slot = connections.admit(peer).await;
                let stream = WriteTimeoutStream::new(stream, answer_timeout);
                Ok::<_, DispatchError>((RequestStream::new(stream, slot, body_timeout), peer))
            }
        })
        .and_then(http)
    })?;
    Ok(HttpServer { server: server.run(), listener: Arc::new(Mutex::new(Some(listener))), is_draining, stage })
}
