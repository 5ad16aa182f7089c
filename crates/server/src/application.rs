//! The service from start to shutdown.
//!
//! `build` binds the listeners and starts the adapters; `run_until` serves. A shutdown runs in this order: `/ready`
//! fails, no new connections are accepted, requests in flight are completed, the writer of the storage ends, the
//! management listener closes. A shutdown that exceeds `shutdown.timeout` is an error with the number of requests that
//! were cut off. A server or writer that stops unexpectedly is an error, too.

use std::{
    future::pending,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use animal_store_adapters_http::{HttpServer, InFlight, serve_api, serve_management};
use animal_store_app::CheckReadiness;
use anyhow::{Context, anyhow, bail};
use tokio::task::{JoinError, JoinHandle};

use crate::{config::Config, shutdown::ShutdownProbe, wiring::Adapters};

/// The service, bound to its addresses. Connections are accepted; they are served once it runs.
pub struct Application {
    address: SocketAddr,
    management_address: Option<SocketAddr>,
    api: HttpServer,
    management: Option<HttpServer>,
    in_flight: InFlight,
    shutdown_probe: Arc<ShutdownProbe>,
    writer: Option<JoinHandle<()>>,
    shutdown_timeout: Duration,
}

impl Application {
    /// Binds the listeners and starts the adapters.
    ///
    /// # Errors
    /// If an address cannot be bound or the storage cannot be used. An unavailable dependency is an error only if the
    /// configuration requires it.
    pub async fn build(config: Config) -> anyhow::Result<Self> {
        let listener = bind(config.http.listen)?;
        let address = listener.local_addr()?;
        let adapters = Adapters::start(config.storage, config.keys).await?;
        let (api, in_flight) =
            serve_api(listener, &config.http.limits, config.http.cors_origins, adapters.use_cases())?;

        let shutdown_probe = Arc::new(ShutdownProbe::default());
        let Adapters { mut readiness, writer, .. } = adapters;
        readiness.insert(0, shutdown_probe.clone());
        let readiness = CheckReadiness::new(readiness);
        let listener = config.management_listen.map(bind).transpose()?;
        let management_address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let management =
            listener.map(|listener| serve_management(listener, &config.http.limits, &readiness)).transpose()?;

        let shutdown_timeout = config.shutdown_timeout;
        Ok(Self { address, management_address, api, management, in_flight, shutdown_probe, writer, shutdown_timeout })
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
    /// If a server or the writer stops unexpectedly, or requests are cut off.
    pub async fn run_until(
        self,
        stop: impl Future<Output = ()>,
        stop_now: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let api_handle = self.api.handle();
        let mut api = tokio::spawn(self.api.run());
        let management_handle = self.management.as_ref().map(HttpServer::handle);
        let mut management = self.management.map(|server| tokio::spawn(server.run()));
        let mut writer = self.writer;

        // The writer ends after the API server: the server is polled first, so that its error is reported.
        tokio::select! {
            biased;
            () = stop => {}
            result = &mut api => return Err(server_error("the HTTP server", result)),
            result = or_pending(management.as_mut()) => return Err(server_error("the management server", result)),
            _ = or_pending(writer.as_mut()) => bail!("the writer of the storage stopped unexpectedly"),
        }

        tracing::info!(in_flight = self.in_flight.count(), "shutting down");
        self.shutdown_probe.fail();
        let graceful = async {
            api_handle.stop(Duration::ZERO).await;
            let result = api.await;
            if let Some(writer) = &mut writer {
                // A panic ends the task as well.
                let _ = writer.await;
            }
            result
        };
        let cut_short = tokio::select! {
            result = graceful => match result {
                Ok(Ok(())) => None,
                result => return Err(server_error("the HTTP server", result)),
            },
            () = tokio::time::sleep(self.shutdown_timeout) => Some("the shutdown timeout passed"),
            () = stop_now => Some("a second signal arrived"),
        };
        if let Some(handle) = management_handle {
            handle.abort().await;
        }
        match (cut_short, self.in_flight.count()) {
            (None, _) => tracing::info!("all requests were completed"),
            (Some(reason), 0) => bail!("{reason} before clients had received their responses"),
            (Some(reason), 1) => bail!("{reason}: 1 request in flight was cut off"),
            (Some(reason), count) => bail!("{reason}: {count} requests in flight were cut off"),
        }
        Ok(())
    }
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))
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
