//! The service from start to shutdown.
//!
//! `build` binds the listeners and starts the adapters; `run_until` serves. A shutdown runs in this order: `/ready` is
//! 503 and responses announce the end of their connections, the drain delay passes, no new connections are accepted,
//! requests in flight are completed, the writer of the storage ends, the management listener closes. At the deadline,
//! or at a second signal, the rest is cut off: an error if requests were in flight. A server or writer that stops
//! unexpectedly is an error, too.

use std::{
    future::pending,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener},
    pin::pin,
    time::Duration,
};

use animal_store_adapters_http::{HttpServer, InFlight, serve_api, serve_management};
use animal_store_app::CheckReadiness;
use anyhow::{anyhow, bail};
use tokio::{
    task::{JoinError, JoinHandle},
    time::{sleep, sleep_until, timeout},
};

use crate::{
    config::{Config, ShutdownConfig},
    shutdown::ShutdownRequest,
    wiring::Adapters,
};

/// Timeout for closing connections that are cut off. The end of the process closes the others.
const ABORT_TIMEOUT: Duration = Duration::from_millis(100);

/// The service, bound to its addresses. Connections are accepted; they are served once it runs.
pub struct Application {
    address: SocketAddr,
    management_address: Option<SocketAddr>,
    api: HttpServer,
    management: Option<HttpServer>,
    in_flight: InFlight,
    readiness: CheckReadiness,
    writer: Option<JoinHandle<()>>,
    shutdown: ShutdownConfig,
}

impl Application {
    /// Binds the listeners and starts the adapters.
    ///
    /// # Errors
    /// If an address cannot be bound or the storage cannot be used. An unavailable dependency is an error only if the
    /// configuration requires it.
    pub async fn build(config: Config) -> anyhow::Result<Self> {
        // Before the adapters, which can take seconds to start: an address in use is reported at once.
        let listener = bind(config.http.listen, "http.listen")?;
        let address = listener.local_addr()?;
        let management = config.management_listen.map(|address| bind(address, "management.listen")).transpose()?;
        let management_address = management.as_ref().map(TcpListener::local_addr).transpose()?;

        let adapters = Adapters::start(config.storage, config.keys).await?;
        let limits = &config.http.limits;
        let (origins, proxies) = (config.http.cors_origins, config.http.trusted_proxies);
        let (api, in_flight) = serve_api(listener, limits, origins, proxies, adapters.use_cases())?;
        let Adapters { readiness, writer, .. } = adapters;
        let management = management.map(|listener| serve_management(listener, limits, &readiness)).transpose()?;
        let shutdown = config.shutdown;
        Ok(Self { address, management_address, api, management, in_flight, readiness, writer, shutdown })
    }

    /// Address of the API.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the management listener.
    pub const fn management_address(&self) -> Option<SocketAddr> {
        self.management_address
    }

    /// Serves until `stop` resolves, then shuts down gracefully. `stop_now` ends the shutdown early.
    ///
    /// # Errors
    /// If a server or the writer stops unexpectedly, requests are cut off, or the writer does not end in time.
    pub async fn run_until(
        self,
        stop: impl Future<Output = ShutdownRequest>,
        stop_now: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let api_handle = self.api.handle();
        let mut api = tokio::spawn(self.api.run());
        let management_handle = self.management.as_ref().map(HttpServer::handle);
        let mut management = self.management.map(|server| tokio::spawn(server.run()));
        let mut writer = self.writer;

        // The writer ends after the API server: the server is polled first, so that its error is reported.
        let request = tokio::select! {
            biased;
            request = stop => request,
            result = &mut api => return Err(server_error("the HTTP server", result)),
            result = or_pending(management.as_mut()) => return Err(server_error("the management server", result)),
            _ = or_pending(writer.as_mut()) => bail!("the writer of the storage stopped unexpectedly"),
        };

        tracing::info!(in_flight = self.in_flight.count(), "shutting down");
        self.readiness.start_draining();
        api_handle.announce_close();
        let mut cut_short = pin!(async {
            tokio::select! {
                () = sleep_until(request.received + self.shutdown.requests_timeout()) => "the shutdown timeout passed",
                () = stop_now => "a second signal arrived",
            }
        });
        let drained = async {
            if request.drain {
                sleep(self.shutdown.drain_delay).await;
            }
            api_handle.stop(self.shutdown.idle_grace).await;
            api.await
        };
        let result = tokio::select! {
            result = drained => match result {
                Ok(Ok(())) => tokio::select! {
                    () = end_of(writer) => {
                        tracing::info!("all requests were completed");
                        Ok(())
                    }
                    reason = cut_short => Err(anyhow!("{reason} before the writer of the storage ended")),
                },
                result => Err(server_error("the HTTP server", result)),
            },
            reason = &mut cut_short => cut_off(reason, self.in_flight.count()),
        };
        let close = async {
            tokio::join!(api_handle.abort(), async {
                if let Some(management) = management_handle {
                    management.abort().await;
                }
            })
        };
        let _ = timeout(ABORT_TIMEOUT, close).await;
        result
    }
}

/// Waits for the end of the writer. A panic ends it as well.
async fn end_of(writer: Option<JoinHandle<()>>) {
    if let Some(writer) = writer {
        let _ = writer.await;
    }
}

/// Returns the outcome of a shutdown that ends early. A client that only reads its response does not count.
fn cut_off(reason: &str, in_flight: usize) -> anyhow::Result<()> {
    match in_flight {
        0 => tracing::info!(reason, "open connections were closed: no request was in flight"),
        1 => bail!("{reason}: 1 request in flight was cut off"),
        count => bail!("{reason}: {count} requests in flight were cut off"),
    }
    Ok(())
}

/// Binds the address that a configuration key sets.
fn bind(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::AddrInUse => "address already in use: stop the process that uses it, or set another address",
            ErrorKind::AddrNotAvailable => "no network interface of this machine has this address",
            ErrorKind::PermissionDenied => "permission denied: a port below 1024 may need a privilege",
            _ => return anyhow!("cannot listen on {address} ({key}): {error}"),
        };
        anyhow!("cannot listen on {address} ({key}): {reason}")
    })
}

/// Waits for a future. Without one, waits forever.
async fn or_pending<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Describes a server that stopped before the shutdown.
fn server_error(server: &str, result: Result<io::Result<()>, JoinError>) -> anyhow::Error {
    match result {
        Ok(Ok(())) => anyhow!("{server} stopped unexpectedly"),
        Ok(Err(error)) => anyhow::Error::new(error).context(format!("{server} failed")),
        Err(error) => anyhow::Error::new(error).context(format!("{server} stopped unexpectedly")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_error_names_the_server_and_the_reason() {
        let panicked = tokio::spawn(async { panic!("on purpose") }).await;
        let message = |result| format!("{:#}", server_error("the HTTP server", result));

        assert_eq!(message(Ok(Ok(()))), "the HTTP server stopped unexpectedly");
        assert_eq!(message(Ok(Err(io::Error::other("no workers")))), "the HTTP server failed: no workers");
        assert!(message(panicked).starts_with("the HTTP server stopped unexpectedly: "));
    }
}
