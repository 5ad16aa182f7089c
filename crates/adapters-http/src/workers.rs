//! The workers of a server: one runtime each, in which every connection passes the transport and reaches the routes.

#[cfg(test)]
mod tests;

use std::{
    fmt::Debug,
    io,
    rc::Rc,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use actix_http::{HttpService, Request, Response, body::MessageBody, error::DispatchError};
use actix_server::Server;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    Error,
    dev::AppConfig,
    rt::{self, net::TcpStream},
};
use tokio::sync::{mpsc, watch};
use tracing::Level;

use crate::{
    http_server::{HttpServer, WorkerEnd},
    limits::Limits,
    metrics::HttpMetrics,
    middleware::{
        logged_requests::RequestLogFilter,
        request_log::{PeerAddress, RequestLog},
    },
    transport::{
        acceptor::Acceptor,
        client_stream::ClientStream,
        connections::{Connections, Stage},
        counted_stream::{CountedStream, OpenConnection},
        listener::HttpListener,
        request_stream::RequestStream,
        responding::respond,
        sliced_body::WRITE_BUFFER_BYTES,
        tls::{handshakes::Handshakes, identity::CurrentTlsIdentity},
        write_timeout::WriteTimeoutStream,
    },
    worker_progress::{self, WorkerProgress},
};

/// More than any timeout that the caller of [`HttpServerHandle::stop`](crate::HttpServerHandle::stop) may set.
const NEVER_FORCED: Duration = Duration::from_hours(24);

/// Resolution of the clock of actix. It is added to timeouts, which would otherwise elapse too early.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(500);

/// Starts the workers that serve `app` on a listener.
pub(crate) fn start_workers<I, S, B>(
    listener: HttpListener,
    limits: &Limits,
    tls: Option<CurrentTlsIdentity>,
    log_level: Level,
    logged: RequestLogFilter,
    metrics: Arc<HttpMetrics>,
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
    let (progress, progress_requests) = WorkerProgress::new(workers);
    let (worker_end, ended) = mpsc::unbounded_channel();
    let is_draining = Arc::new(AtomicBool::new(false));
    let draining = Arc::clone(&is_draining);
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(limits.accepted_connections_per_worker())
        .shutdown_timeout(NEVER_FORCED.as_secs())
        .disable_signals();
    let all_metrics = Arc::clone(&metrics);
    let serve_streams = move || {
        metrics.add_worker();
        let metrics = Arc::clone(&metrics);
        let log = Rc::new(RequestLog { level: log_level, logged: logged.clone(), metrics: Arc::clone(&metrics) });
        let connections = Connections::new(&limits, workers, Rc::clone(&log), Arc::clone(&draining));
        let handshakes = tls
            .clone()
            .map(|identity| Rc::new(Handshakes::new(identity, &limits, stage_receiver.clone(), Arc::clone(&metrics))));
        let (following, worker_end) = (Rc::clone(&connections).follow(stage_receiver.clone()), worker_end.clone());
        rt::spawn(async {
            // The runtime of the worker drops its tasks.
            let _end = WorkerEnd(worker_end);
            following.await;
        });
        rt::spawn(worker_progress::confirm_each(progress_requests.clone()));
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
        fn_service(move |stream: TcpStream| {
            let (connections, handshakes) = (Rc::clone(&admission), handshakes.clone());
            let open = OpenConnection::new(Arc::clone(&metrics));
            async move {
                let peer = stream.peer_addr().ok();
                stream.set_nodelay(true)?;
                let stream = match handshakes {
                    // In a box, because connections without TLS have this future, too.
                    Some(handshakes) => Box::pin(handshakes.accept(stream, peer)).await?,
                    None => ClientStream::Tcp(stream),
                };
                let stream = CountedStream::new(stream, open);
                let slot = connections.admit(peer).await;
                let stream = WriteTimeoutStream::new(stream, answer_timeout);
                Ok::<_, DispatchError>((RequestStream::new(stream, slot, body_timeout), peer))
            }
        })
        .and_then(http)
    };
    let socket = listener.try_clone_socket()?;
    let acceptor = Acceptor::new(&socket);
    let server = server.listen("http", socket, serve_streams)?;
    let listener = Arc::new(Mutex::new(Some(listener)));
    Ok(HttpServer {
        ended,
        server: server.run(),
        listener,
        acceptor,
        is_draining,
        stage,
        progress,
        metrics: all_metrics,
    })
}
