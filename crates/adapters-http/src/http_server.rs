//! A server: its workers, each a thread with one runtime in which every connection has a task.

use std::{
    fmt::Debug,
    future::poll_fn,
    io,
    net::{SocketAddr, TcpStream},
    rc::Rc,
    sync::{Arc, atomic::AtomicUsize},
    thread,
    time::Duration,
};

use actix_http::{Request, Response, body::MessageBody};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use actix_web::{Error, dev::AppConfig};
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{mpsc, watch},
    task::{JoinHandle, spawn_local},
};
use tokio_util::either::Either;

use crate::{
    limits::Limits,
    middleware::{request_log::RequestLog, trusted_proxies::TrustedProxies},
    transport::{
        client::Client,
        connection::Stage,
        connections::Connections,
        exchange,
        listener::{HttpListener, Inbox},
        socket::Socket,
        tls::{self, CurrentTlsIdentity},
    },
};

/// A server, which accepts connections as soon as it is created. If it is dropped, it stops.
pub struct HttpServer {
    /// Address of its listener.
    pub address: SocketAddr,
    /// The acceptor and each worker have a receiver until they end.
    stage: watch::Sender<Stage>,
}

impl HttpServer {
    /// Starts the workers that serve `app` on a listener, and waits until they can. Returns the task that accepts
    /// connections as well: it ends when the server is stopped, or with an error if a worker ends before, or if the
    /// listener cannot be used.
    pub(crate) fn start<I, S, B>(
        listener: HttpListener,
        limits: &Limits,
        tls: Option<&CurrentTlsIdentity>,
        proxies: &TrustedProxies,
        log: &RequestLog,
        app: impl Fn(Rc<RequestLog>) -> I + Clone + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<io::Result<()>>)>
    where
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<Request, Config = AppConfig, Response: Into<Response<B>>, Error = Error>
            + 'static,
        S::InitError: Debug,
        B: MessageBody + 'static,
    {
        listener.prepare()?;
        let (stage, stages) = watch::channel(Stage::Serving);
        let mut inboxes = Vec::new();
        for index in 0..limits.running_workers() {
            let (sender, receiver) = mpsc::channel(limits.queued_connections_per_worker());
            let (started, start) = std::sync::mpsc::channel();
            let (limits, tls, log, app) = (limits.clone(), tls.cloned(), log.clone(), app.clone());
            let proxies = proxies.clone();
            let (stages, load) = (stages.clone(), Arc::<AtomicUsize>::default());
            inboxes.push(Inbox {
                sender,
                load: Arc::clone(&load),
            });
            thread::Builder::new()
                .name(format!("http-{index}"))
                .spawn(move || {
                    let runtime = Builder::new_current_thread()
                        .enable_all()
                        .build_local(LocalOptions::default())?;
                    runtime.block_on(async {
                        log.metrics.add_worker();
                        let log = Rc::new(log);
                        let factory = app(Rc::clone(&log)).into_factory();
                        let service = factory
                            .new_service(AppConfig::default())
                            .await
                            .expect("no service fails to start");
                        let connections = Connections::new(&limits, proxies, log, load, stages);
                        // Fails if the start was given up.
                        let _ = started.send(());
                        serve(receiver, connections, Rc::new(service), tls).await;
                    });
                    io::Result::Ok(())
                })?;
            start
                .recv()
                .map_err(|_| io::Error::other("a worker thread has ended"))?;
        }
        let address = listener.address;
        let acceptor = tokio::spawn(listener.accept(inboxes, stages));
        Ok((Self { address, stage }, acceptor))
    }

    /// From now on, every response says `Connection: close`.
    pub fn announce_close(&self) {
        self.stage.send_replace(Stage::Draining);
    }

    /// Stops accepting, and resolves when every connection is closed. A connection is closed after its response, which
    /// says `Connection: close`, or once it was idle for `idle_grace`.
    pub async fn stop(&self, idle_grace: Duration) {
        self.stage.send_replace(Stage::Stopping { idle_grace });
        self.stage.closed().await;
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.stage.send_replace(Stage::Aborting);
        self.stage.closed().await;
    }
}

/// Serves connections until the acceptor ends and every connection is closed.
async fn serve<S, B>(
    mut sockets: mpsc::Receiver<TcpStream>,
    connections: Rc<Connections>,
    service: Rc<S>,
    tls: Option<CurrentTlsIdentity>,
) where
    S: Service<Request, Response: Into<Response<B>>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    let _ = poll_fn(|context| service.poll_ready(context)).await;
    spawn_local(Rc::clone(&connections).watch());
    while let Some(socket) = sockets.recv().await {
        let slot = connections.admit(socket.peer_addr().ok()).await;
        let (service, tls) = (Rc::clone(&service), tls.clone());
        spawn_local(async move {
            socket.set_nodelay(true)?;
            let stream = Socket::new(tokio::net::TcpStream::from_std(socket)?);
            slot.attach(stream.clone());
            // One type, so that the transport is compiled once.
            let stream = match tls {
                // In boxes, because connections without TLS have this future, too.
                Some(identity) => Either::Right(Box::new(
                    Box::pin(tls::accept(&identity, stream, &slot)).await?,
                )),
                None => Either::Left(stream),
            };
            // A connection that ends early has no response to wait for.
            let _ = exchange::serve(Client::new(stream, slot), &*service).await;
            io::Result::Ok(())
        });
    }
    connections.closed().await;
}

#[cfg(test)]
mod tests {
    use std::{
        future::{Ready, ready},
        task::{Context, Poll},
        time::Duration,
    };

    use actix_service::{Service, fn_factory_with_config};
    use actix_web::body::BoxBody;
    use tokio::time::timeout;

    use super::*;

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
        let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let app = |_| fn_factory_with_config(|_: AppConfig| ready(Ok::<_, ()>(Panicking)));
        let server = HttpServer::start(
            listener,
            &Limits::default(),
            None,
            &TrustedProxies::default(),
            &RequestLog::default(),
            app,
        );

        let (_server, acceptor) = server.expect("a server");
        let end = timeout(Duration::from_secs(20), acceptor)
            .await
            .expect("the end of the server");
        assert_eq!(
            end.expect("no panic")
                .expect_err("a worker ends")
                .to_string(),
            "a worker thread has ended"
        );
    }
}
