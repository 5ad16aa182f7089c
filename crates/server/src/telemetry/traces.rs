//! Sends the spans of sampled requests to a collector, as OTLP over HTTP.
//!
//! `adapters-http` decides which requests are sampled. A thread of the SDK sends their spans in batches. Its queue is
//! bounded: while the collector is slow or unavailable, spans are dropped, and no request waits.

mod collector;

use std::{fs, process, time::Duration};

use anyhow::Context as _;
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use tokio::task::spawn_blocking;
use tracing::{Metadata, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::{Layer, Registry, filter::dynamic_filter_fn, layer::Context};
use url::Url;

use self::collector::Collector;
use crate::{config::Config, version};

/// Target of all spans. The log never contains them.
pub(super) const TARGET: &str = "trace";

/// Name of the span of a request. Without it, its children are not traced.
const REQUEST: &str = "request";

/// Capacity of the queue in spans, of about 600 bytes each. Spans beyond it are dropped.
const QUEUE_SPANS: usize = 8192;

/// Maximum number of spans in a batch.
const BATCH_SPANS: usize = 512;

/// Pause between batches. A span is sent this much later at most.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Timeout for a batch, its retries included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the last batches at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A layer that receives spans.
pub(super) type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The receiver of spans, if traces are on.
pub(crate) struct Traces {
    /// `None` if traces are off.
    provider: Option<SdkTracerProvider>,
}

impl Traces {
    /// Starts the thread that sends traces, if they are on.
    ///
    /// # Errors
    /// If the certificate authorities of the system cannot be read, or an environment variable of OpenTelemetry is
    /// not supported.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Self> {
        let provider = config.traces.endpoint.as_ref().map(provider).transpose();
        let provider = provider.context("traces cannot be sent (traces.endpoint)")?;
        Ok(Self { provider })
    }

    /// Returns the layers that receive the spans.
    pub(crate) fn layers(&self) -> Vec<SpanLayer> {
        let otlp = self.provider.as_ref().map(|provider| {
            let layer = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("animal-store"))
                .with_context_activation(false)
                .with_location(false)
                .with_target(false)
                .with_threads(false)
                .with_tracked_inactivity(false);
            let filter = dynamic_filter_fn(is_traced)
                .with_callsite_filter(
                    |metadata| if is_span(metadata) { Interest::sometimes() } else { Interest::never() },
                )
                .with_max_level_hint(LevelFilter::TRACE);
            layer.with_filter(filter).boxed()
        });
        otlp.into_iter().collect()
    }

    /// Sends the last spans, within two seconds. It can be cancelled: the thread that waits is left behind.
    pub(crate) async fn finish(self) {
        let Some(provider) = self.provider else { return };
        let flushed = spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT));
        if let Ok(Err(_)) = flushed.await {
            tracing::warn!("the last spans were dropped: the collector of traces did not respond in time");
        }
    }
}

fn is_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TARGET
}

/// A span of a request that is not sampled has no parent in this layer.
fn is_traced(metadata: &Metadata<'_>, context: &Context<'_, Registry>) -> bool {
    is_span(metadata) && (metadata.name() == REQUEST || context.lookup_current().is_some())
}

fn provider(endpoint: &Url) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::connect(endpoint, EXPORT_TIMEOUT)?)
        .with_endpoint(endpoint.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE_SPANS)
        .with_max_export_batch_size(BATCH_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    let provider = SdkTracerProvider::builder().with_span_processor(processor).with_sampler(Sampler::AlwaysOn);
    Ok(provider.with_resource(resource()).build())
}

/// The attributes of this instance, and those in `OTEL_RESOURCE_ATTRIBUTES`. `application_name` in PostgreSQL contains
/// the same host and process.
fn resource() -> Resource {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let instance = format!("{} {}", host.trim(), process::id());
    Resource::builder()
        .with_service_name("animal-store")
        .with_attribute(KeyValue::new("service.version", version::VERSION))
        .with_attribute(KeyValue::new("service.instance.id", instance))
        .build()
}
