use std::{
    error::Error,
    iter::successors,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, hyper::HyperClient};
use tokio::runtime::Handle;
use url::Url;

/// The HTTP client of the exporter. It runs on the runtime, because the thread of the exporter has none, and logs each
/// outage of the collector once.
#[derive(Debug)]
pub(super) struct Collector {
    client: Arc<dyn HttpClient>,
    runtime: Handle,
    is_unavailable: AtomicBool,
}

impl Collector {
    /// Creates a client on the current runtime. It connects when it sends something.
    ///
    /// # Errors
    /// If the certificate authorities of the system are needed and cannot be read.
    pub(super) fn connect(endpoint: &Url, timeout: Duration) -> anyhow::Result<Self> {
        let client: Arc<dyn HttpClient> = if endpoint.scheme() == "https" {
            let connector = HttpsConnectorBuilder::new().with_native_roots()?.https_only().enable_http1().build();
            Arc::new(HyperClient::new(connector, timeout, None))
        } else {
            Arc::new(HyperClient::with_default_connector(timeout, None))
        };
        Ok(Self { client, runtime: Handle::current(), is_unavailable: AtomicBool::new(false) })
    }

    /// Logs the first failure, and the first success after it.
    fn log_once(&self, failure: Option<String>) {
        let was_unavailable = self.is_unavailable.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_unavailable => {
                tracing::warn!(reason, "traces cannot be sent to the collector: spans are dropped");
            }
            None if was_unavailable => tracing::info!("traces are sent to the collector again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let result = self.runtime.spawn(async move { client.send_bytes(request).await }).await?;
        self.log_once(match &result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector responded with {}", response.status())),
            Err(error) => Some(with_sources(&**error)),
        });
        result
    }
}

fn with_sources(error: &(dyn Error + 'static)) -> String {
    successors(Some(error), |&error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
