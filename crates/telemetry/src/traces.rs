//! Sends the spans of sampled requests to a collector, as OTLP over HTTP.
//!
//! `adapters-http` decides which requests are sampled. A thread of the SDK sends their spans in batches. Its queue is
//! bounded: while the collector is slow or unavailable, spans are dropped, and no request waits.

use std::{
    error::Error,
    fs, io,
    iter::successors,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, hyper::HyperClient};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use thiserror::Error;
use tokio::{runtime::Handle, task::spawn_blocking};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
};
use url::Url;

use crate::Build;

/// Target of all spans. The log never contains them.
pub(crate) const TARGET: &str = "trace";

/// Capacity of the queue in spans, of about 600 bytes each. Spans beyond it are dropped.
const QUEUE_SPANS: usize = 8192;

/// Pause between batches. A span is sent this much later at most.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Timeout for a batch, its retries included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the last batches at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A layer that receives spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Traces cannot be sent.
#[derive(Debug, Error)]
pub enum TracesError {
    /// The certificate authorities of the system cannot be read.
    #[error("the certificate authorities of the system cannot be read: {0}")]
    Authorities(#[from] io::Error),
    /// An environment variable of OpenTelemetry is not supported.
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// The sender of traces. `None`: traces are off.
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Starts the thread that sends traces, if they are on.
    ///
    /// # Errors
    /// If the certificate authorities of the system cannot be read, or an environment variable of OpenTelemetry is
    /// not supported.
    pub fn start(endpoint: Option<&Url>, build: Build) -> Result<Self, TracesError> {
        let provider = endpoint.map(|endpoint| provider(endpoint, build));
        Ok(Self(provider.transpose()?))
    }

    /// Returns the layer that receives the spans. A request that is not sampled begins none.
    #[must_use]
    pub fn layer(&self) -> Option<SpanLayer> {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.as_ref()?.tracer("animal-store"))
            .with_context_activation(false)
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        Some(
            layer
                .with_filter(Targets::new().with_target(TARGET, LevelFilter::TRACE))
                .boxed(),
        )
    }

    /// Sends the last spans, within two seconds. It can be cancelled: the thread that waits is left behind.
    pub async fn finish(self) {
        let Some(provider) = self.0 else { return };
        let flushed = spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT));
        if let Ok(Err(_)) = flushed.await {
            tracing::warn!(
                "the last spans were dropped: the collector of traces did not respond in time"
            );
        }
    }
}

fn provider(endpoint: &Url, build: Build) -> Result<SdkTracerProvider, TracesError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::new(endpoint)?)
        .with_endpoint(endpoint.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    // `application_name` in PostgreSQL contains the same host and process.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let instance = format!("{} {}", host.trim(), process::id());
    // The builder adds the attributes in `OTEL_RESOURCE_ATTRIBUTES`.
    let resource = Resource::builder()
        .with_service_name("animal-store")
        .with_attribute(KeyValue::new("service.version", build.version))
        .with_attribute(KeyValue::new("service.instance.id", instance));
    let provider = SdkTracerProvider::builder()
        .with_span_processor(
            BatchSpanProcessor::builder(exporter)
                .with_batch_config(batches)
                .build(),
        )
        .with_sampler(Sampler::AlwaysOn)
        .with_resource(resource.build());
    Ok(provider.build())
}

/// The HTTP client of the exporter. It runs on the runtime, because the thread of the exporter has none, and logs each
/// outage of the collector once.
#[derive(Debug)]
struct Collector {
    client: Arc<dyn HttpClient>,
    runtime: Handle,
    is_unavailable: AtomicBool,
}

impl Collector {
    /// Creates a client on the current runtime. It reads the certificate authorities of the system if it needs them.
    fn new(endpoint: &Url) -> io::Result<Self> {
        let client: Arc<dyn HttpClient> = if endpoint.scheme() == "https" {
            let connector = HttpsConnectorBuilder::new()
                .with_native_roots()?
                .https_only()
                .enable_http1()
                .build();
            Arc::new(HyperClient::new(connector, EXPORT_TIMEOUT, None))
        } else {
            Arc::new(HyperClient::with_default_connector(EXPORT_TIMEOUT, None))
        };
        Ok(Self {
            client,
            runtime: Handle::current(),
            is_unavailable: AtomicBool::new(false),
        })
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let result = self
            .runtime
            .spawn(async move { client.send_bytes(request).await })
            .await?;
        let failure = match &result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!(
                "the collector responded with {}",
                response.status()
            )),
            Err(error) => Some(with_sources(&**error)),
        };
        let was_unavailable = self
            .is_unavailable
            .swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_unavailable => {
                tracing::warn!(
                    reason,
                    "traces cannot be sent to the collector: spans are dropped"
                );
            }
            None if was_unavailable => tracing::info!("traces are sent to the collector again"),
            _ => {}
        }
        result
    }
}

/// Formats an error with its sources.
fn with_sources(error: &dyn Error) -> String {
    let errors = successors(Some(error), |&error| error.source());
    let texts: Vec<_> = errors.map(ToString::to_string).collect();
    texts.join(": ")
}
