//! The service from its start to its end.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use animal_store_adapters_http::{HttpServer, InFlight, serve_api, serve_management};
use animal_store_adapters_postgres::WriterTask;
use animal_store_app::CheckReadiness;
use anyhow::{Context, bail};
use tokio::task::JoinHandle;

use crate::{
    config::{Config, ShutdownConfig},
    shutdown::Draining,
    wiring::Adapters,
};

/// The service, bound to its addresses. Clients may connect; they are answered once it runs.
pub struct Application {
    address: SocketAddr,
    management_address: Option<SocketAddr>,
    api: HttpServer,
    management: Option<HttpServer>,
    in_flight: InFlight,
    draining: Arc<Draining>,
    writer: Option<WriterTask>,
    shutdown: ShutdownConfig,
}

impl Application {
    /// Wires the service as configured and binds it to its addresses.
    ///
    /// # Errors
    /// Where an address cannot be bound, or the storage cannot be used as it is. That something which the service
    /// depends on is away is no error, unless the configuration insists: it may come.
    pub async fn build(config: Config) -> anyhow::Result<Self> {
        let draining = Arc::new(Draining::default());
        let listener = bind(config.http.listen)?;
        let address = listener.local_addr()?;
        let adapters = Adapters::start(config.storage, config.keys).await?;
        let (api, in_flight) =
            serve_api(listener, &config.http.limits, config.http.cors_origins, adapters.use_cases())?;

        let Adapters { mut readiness, writer, .. } = adapters;
        readiness.insert(0, draining.clone());
        let readiness = CheckReadiness::new(readiness);
        let listener = config.management.listen.map(bind).transpose()?;
        let management_address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let management =
            listener.map(|listener| serve_management(listener, &config.http.limits, &readiness)).transpose()?;

        Ok(Self {
            address,
            management_address,
            api,
            management,
            in_flight,
            draining,
            writer,
            shutdown: config.shutdown,
        })
    }

    /// Where clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where operators connect, if anywhere.
    pub const fn management_address(&self) -> Option<SocketAddr> {
        self.management_address
    }

    /// Serves until `stop` is ready, then ends in order: not ready any more, no new connections, what is in flight
    /// is answered, connections are closed with their next answer. `stop_now` ends that early.
    ///
    /// # Errors
    /// Where a server ended by itself, or requests were cut off.
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

        // The writer ends where the HTTP server does: that one is asked first.
        tokio::select! {
            biased;
            () = stop => {}
            end = &mut api => return Err(unexpected("the HTTP server", end)),
            end = ended(&mut management) => return Err(unexpected("the management server", end)),
            () = writer_ended(&mut writer) => bail!("the writer of the storage died"),
        }

        tracing::info!(in_flight = self.in_flight.count(), "shutting down");
        self.draining.begin();
        let drained = async {
            api_handle.stop(true).await;
            let end = api.await;
            if let Some(writer) = &mut writer {
                writer.wait().await;
            }
            end
        };
        let early = tokio::select! {
            end = drained => match end {
                Ok(Ok(())) => None,
                end => return Err(unexpected("the HTTP server", end)),
            },
            () = tokio::time::sleep(self.shutdown.timeout) => Some("the shutdown timeout passed"),
            () = stop_now => Some("a second signal came"),
        };
        if let Some(handle) = management_handle {
            handle.stop(false).await;
        }
        match (early, self.in_flight.count()) {
            (None, _) => tracing::info!("every request was answered"),
            (Some(reason), 0) => bail!("{reason} while clients had not yet taken their answers"),
            (Some(reason), 1) => bail!("{reason}: 1 request in flight was cut off"),
            (Some(reason), cut_off) => bail!("{reason}: {cut_off} requests in flight were cut off"),
        }
        Ok(())
    }
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))
}

type End = Result<io::Result<()>, tokio::task::JoinError>;

async fn ended(server: &mut Option<JoinHandle<io::Result<()>>>) -> End {
    match server {
        Some(server) => server.await,
        None => std::future::pending().await,
    }
}

async fn writer_ended(writer: &mut Option<WriterTask>) {
    match writer {
        Some(writer) => writer.wait().await,
        None => std::future::pending().await,
    }
}

fn unexpected(server: &str, end: End) -> anyhow::Error {
    match end {
        Ok(Ok(())) => anyhow::anyhow!("{server} ended by itself"),
        Ok(Err(error)) => anyhow::Error::new(error).context(format!("{server} failed")),
        Err(error) => anyhow::Error::new(error).context(format!("{server} died")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_gone_is_named_with_its_reason() {
        let panicked = tokio::spawn(async { panic!("on purpose") }).await;
        let message = |end| format!("{:#}", unexpected("the HTTP server", end));

        assert_eq!(message(Ok(Ok(()))), "the HTTP server ended by itself");
        assert_eq!(message(Ok(Err(io::Error::other("no workers")))), "the HTTP server failed: no workers");
        assert!(message(panicked).starts_with("the HTTP server died: "));
    }
}
