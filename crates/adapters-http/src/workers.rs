//! The workers of a server: a thread each, with one runtime in which every connection has a task.

use std::{
    fmt::Debug,
    future::poll_fn,
    io,
    net::TcpStream,
    rc::Rc,
    sync::{Arc, atomic::AtomicUsize},
    thread,
};

use actix_http::{Request, Response, ServiceConfig, body::MessageBody};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use actix_web::{Error, dev::AppConfig};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{Builder, LocalOptions},
    sync::{mpsc, watch},
    task::spawn_local,
};
use tokio_util::either::Either;

use crate::{
    http_server::{HttpServer, HttpServerHandle, WorkerEnd},
    limits::Limits,
    middleware::request_log::RequestLog,
    transport::{
        client::Client,
        connection::Stage,
        connections::{Connections, Slot},
        exchange,
        listener::{HttpListener, Inbox},
        tls::{self, CurrentTlsIdentity},
    },
};

/// What every worker of a server gets.
#[derive(Clone)]
pub(crate) struct WorkerSettings {
    pub(crate) limits: Limits,
    pub(crate) tls: Option<CurrentTlsIdentity>,
    pub(crate) log: RequestLog,
}

/// Starts the workers that serve `app` on a listener, and waits until they can.
pub(crate) fn start_workers<I, S, B>(
    listener: HttpListener,
    settings: &WorkerSettings,
    app: impl Fn(Rc<RequestLog>) -> I + Clone + Send + 'static,
) -> io::Result<HttpServer>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Response: Into<Response<B>>, Error = Error> + 'static,
    S::InitError: Debug,
    B: MessageBody + 'static,
{
    listener.prepare()?;
    let (stage, stages) = watch::channel(Stage::Serving);
    let (end, ended) = mpsc::unbounded_channel();
    let mut inboxes = Vec::new();
    for index in 0..settings.limits.running_workers() {
        let (sender, receiver) = mpsc::channel(settings.limits.queued_connections_per_worker());
        let (started, start) = std::sync::mpsc::channel();
        let (settings, app, end) = (settings.clone(), app.clone(), WorkerEnd(end.clone()));
        let (stages, load) = (stages.clone(), Arc::<AtomicUsize>::default());
        inboxes.push(Inbox { sender, load: Arc::clone(&load) });
        thread::Builder::new().name(format!("http-{index}")).spawn(move || {
            let _end = end;
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
            runtime.block_on(async {
                settings.log.metrics.add_worker();
                let log = Rc::new(settings.log);
                let factory = app(Rc::clone(&log)).into_factory();
                let service = factory.new_service(AppConfig::default()).await.expect("no service fails to start");
                let connections = Connections::new(&settings.limits, log, load);
                // Fails if the start was given up.
                let _ = started.send(());
                serve(receiver, connections, stages, Rc::new(service), settings.tls).await;
            });
            io::Result::Ok(())
        })?;
        start.recv().map_err(|_| io::Error::other("a worker thread has ended"))?;
    }
    tokio::spawn(listener.accept(inboxes, settings.limits.connections_per_worker(), stages));
    Ok(HttpServer { ended, handle: HttpServerHandle { stage } })
}

/// Serves connections until the acceptor ends and every connection is closed.
async fn serve<S, B>(
    mut sockets: mpsc::Receiver<TcpStream>,
    connections: Rc<Connections>,
    stages: watch::Receiver<Stage>,
    service: Rc<S>,
    tls: Option<CurrentTlsIdentity>,
) where
    S: Service<Request, Response: Into<Response<B>>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    let _ = poll_fn(|context| service.poll_ready(context)).await;
    let config = ServiceConfig::default();
    spawn_local(Rc::clone(&connections).watch(stages));
    while let Some(socket) = sockets.recv().await {
        let peer = socket.peer_addr().ok();
        let slot = connections.admit(peer).await;
        let (service, tls, config) = (Rc::clone(&service), tls.clone(), config.clone());
        spawn_local(async move {
            let stream = open(socket, tls, &slot).await?;
            // A connection that ends early has no response to wait for.
            let _ = exchange::serve(Client::new(stream, slot, config), &*service).await;
            io::Result::Ok(())
        });
    }
    connections.closed().await;
}

/// Prepares the stream of a connection. One type, so that the transport is compiled once.
async fn open(
    socket: TcpStream,
    tls: Option<CurrentTlsIdentity>,
    slot: &Slot,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    socket.set_nodelay(true)?;
    let peer = socket.peer_addr().ok();
    let stream = tokio::net::TcpStream::from_std(socket)?;
    match tls {
        // In a box, because connections without TLS have this future, too.
        Some(identity) => {
            let stream = Box::pin(tls::accept(&identity, stream, peer, slot)).await?;
            Ok(Either::Right(Box::new(stream)))
        }
        None => Ok(Either::Left(stream)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{Ready, ready},
        net::TcpListener,
        task::{Context, Poll},
        time::Duration,
    };

    use actix_service::{Service, fn_factory_with_config};
    use actix_web::body::BoxBody;
    use tokio::time::timeout;
    use tracing::Level;

    use super::*;
    use crate::RequestLogFilter;

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
        let log = RequestLog { level: Level::DEBUG, logged: RequestLogFilter::default(), metrics: Arc::default() };
        let settings = WorkerSettings { limits: Limits::default(), tls: None, log };
        let app = |_| fn_factory_with_config(|_: AppConfig| ready(Ok::<_, ()>(Panicking)));
        let server = start_workers(HttpListener::new(listener), &settings, app).expect("a server");

        let end = timeout(Duration::from_secs(20), server.run()).await.expect("the end of the server");
        assert_eq!(end.expect_err("a panic").to_string(), "a worker thread has ended");
    }
}
