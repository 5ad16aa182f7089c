//! A server: its workers, each a thread with one runtime in which every connection has a task.

#[cfg(test)]
mod tests;

use std::{
    future::poll_fn,
    io,
    net::{SocketAddr, TcpStream},
    rc::Rc,
    sync::{Arc, atomic::AtomicUsize, mpsc::Sender},
    thread,
    time::Duration,
};

use actix_http::{
    Request, Response,
    body::{BoxBody, MessageBody},
};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use tokio::{
    runtime::{Builder, LocalOptions},
    select,
    sync::{mpsc, watch},
    task::{JoinHandle, spawn_blocking, spawn_local},
    time::Instant,
};
use tokio_util::either::Either;

use crate::{
    connection::Stage,
    exchange::Exchange,
    listener::{HttpListener, Inbox},
    pool::Pool,
    settings::ServerSettings,
    socket::Socket,
    tls,
};

/// A server, which accepts connections as soon as it is created. If it is dropped, it closes every connection.
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
    ///
    /// # Errors
    /// If the listener cannot be used, or a worker cannot start.
    pub fn start<I, S, B>(
        listener: HttpListener,
        settings: &ServerSettings,
        app: impl Fn() -> I + Clone + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<io::Result<()>>)>
    where
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<
                Request,
                Config: Default,
                Response: Into<Response<B>>,
                Error: Into<Response<BoxBody>>,
            > + 'static,
        B: MessageBody + 'static,
    {
        listener.prepare(settings.limits.max_body_bytes)?;
        let (stage, stages) = watch::channel(Stage::Serving);
        let mut inboxes = Vec::new();
        for index in 0..settings.limits.running_workers() {
            let (sender, sockets) = mpsc::channel(settings.limits.queued_connections_per_worker());
            let load = Arc::<AtomicUsize>::default();
            inboxes.push(Inbox {
                sender,
                load: Arc::clone(&load),
            });
            let (started, start) = std::sync::mpsc::channel::<io::Result<()>>();
            let settings = settings.clone();
            let stages = stages.clone();
            let app = app.clone();
            let worker = async move |started: Sender<_>| {
                // Starts a thread for blocking work, which is kept. If the system refuses further ones, work waits for
                // it; without any, `spawn_blocking` panics.
                if spawn_blocking(|| ()).await.is_err() {
                    return;
                }
                settings.metrics.add_worker();
                let starting = app().into_factory().new_service(S::Config::default());
                let Ok(service) = starting.await else {
                    return;
                };
                let pool = Pool::new(settings, load, stages);
                let _ = started.send(Ok(()));
                // The watch is no task: its panic ends the worker.
                select! {
                    () = serve(sockets, Rc::clone(&pool), Rc::new(service)) => {}
                    () = pool.watch() => {}
                }
            };
            thread::Builder::new()
                .name(format!("http-{index}"))
                .spawn(move || {
                    let runtime = Builder::new_current_thread()
                        .enable_all()
                        .thread_keep_alive(Duration::MAX)
                        .build_local(LocalOptions::default());
                    match runtime {
                        Ok(runtime) => runtime.block_on(worker(started)),
                        Err(error) => _ = started.send(Err(error)),
                    }
                })?;
            let ended = |_| Err(io::Error::other("a worker thread has ended"));
            start.recv().unwrap_or_else(ended)?;
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
        let since = Instant::now();
        self.stage
            .send_replace(Stage::Stopping { since, idle_grace });
        self.stage.closed().await;
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.stage.send_replace(Stage::Aborting);
        self.stage.closed().await;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Aborting);
    }
}

/// Serves connections until the acceptor ends and every connection is closed.
async fn serve<S, B>(mut sockets: mpsc::Receiver<TcpStream>, pool: Rc<Pool>, service: Rc<S>)
where
    S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>> + 'static,
    B: MessageBody + 'static,
{
    // A service that is not ready ends the worker, and with it the server.
    if poll_fn(|context| service.poll_ready(context))
        .await
        .is_err()
    {
        return;
    }
    while let Some(socket) = sockets.recv().await {
        let slot = pool.admit(socket.peer_addr().ok()).await;
        let service = Rc::clone(&service);
        spawn_local(async move {
            socket.set_nodelay(true)?;
            let stream = Socket::new(tokio::net::TcpStream::from_std(socket)?);
            slot.attach(stream.clone());
            let tls = slot.pool.settings.tls.clone();
            // One type, so that `exchange` is compiled once.
            let stream = match tls {
                // In boxes, because connections without TLS have this future, too.
                Some(identity) => Either::Right(Box::new(
                    Box::pin(tls::accept(&identity, stream, &slot)).await?,
                )),
                None => Either::Left(stream),
            };
            // A connection that ends early has no response to wait for.
            let _ = Exchange::new(stream, slot).serve(&*service).await;
            io::Result::Ok(())
        });
    }
    pool.closed().await;
}
