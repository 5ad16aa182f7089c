//! Serves the routes on a listener, with their settings.

use std::{io, sync::Arc};

use actix_web::{
    App,
    middleware::{Condition, from_fn},
    web::Data,
};
use animal_store_app::CheckReadiness;
use prometheus_client::registry::Registry;
use tracing::Level;

use crate::{
    auth::ClientLimits,
    cors::{self, AllowedOrigins},
    http_server::HttpServer,
    limits::Limits,
    metrics::{HttpMetrics, exposition::HttpCollector},
    middleware::{
        self,
        in_flight::{self, InFlight},
        key_shares::KeyShares,
        logged_requests::RequestLogFilter,
        request_log::{self, RequestLog},
        trusted_proxies::TrustedProxies,
    },
    rate_limits::{self, RateLimits},
    routes::{self, UseCases},
    traces::TraceSettings,
    transport::{listener::HttpListener, tls::CurrentTlsIdentity},
    workers::{WorkerSettings, start_workers},
};

/// How the API is served.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Limits and timeouts.
    pub limits: Limits,
    /// Serves HTTPS with this identity. `None`: serves HTTP.
    pub tls: Option<CurrentTlsIdentity>,
    /// Origins whose pages may use the interface, too.
    pub origins: AllowedOrigins,
    /// Proxies that may report the addresses of their clients.
    pub proxies: TrustedProxies,
    /// Which requests have spans.
    pub traces: TraceSettings,
    /// Which requests have a line in the log.
    pub logged: RequestLogFilter,
}

/// Serves the interface. `use_cases` is called once in each worker. The metrics are added to `registry`.
///
/// # Errors
/// If the listener cannot be used.
///
/// # Panics
/// Outside of a runtime.
pub fn serve_api<F>(
    listener: HttpListener,
    settings: ApiSettings,
    registry: &mut Registry,
    use_cases: F,
) -> io::Result<(HttpServer, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let ApiSettings { limits, tls, origins, proxies, traces, logged } = settings;
    let in_flight = InFlight::new(limits.max_in_flight);
    let registry = registry.sub_registry_with_prefix("http");
    let metrics = Arc::new(HttpMetrics::register(registry));
    let (counts, max_connections) = (Arc::clone(&metrics), limits.served_connections());
    let collector = HttpCollector { metrics: counts, in_flight: in_flight.clone(), max_connections, tls: tls.clone() };
    registry.register_collector(Box::new(collector));
    let rates = Arc::new(RateLimits::new(&limits));
    tokio::spawn(rate_limits::evict_periodically(Arc::downgrade(&rates)));
    let log = RequestLog { level: Level::INFO, logged, metrics };
    let settings = WorkerSettings { limits: limits.clone(), tls, log };
    let app_data = (in_flight.clone(), limits, proxies, rates);
    let server = start_workers(listener, &settings, move |log| {
        let (in_flight, limits, proxies, rates) = app_data.clone();
        let shares = KeyShares::new(limits.max_in_flight_per_key_and_worker());
        // The middleware that is added last runs first.
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(in_flight.clone()))
            .app_data(Data::new(ClientLimits { shares, rates }))
            .app_data(limits)
            .app_data(proxies)
            .configure(routes::api)
            .wrap_fn(middleware::catch_panics)
            .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
            .wrap(Condition::new(!origins.is_empty(), origins.cors()))
            .wrap(Condition::new(!origins.is_empty(), from_fn(cors::respond_to_refused_preflight)))
            .wrap_fn(move |request, service| request_log::record(&log, traces, request, service))
    })?;
    Ok((server, in_flight))
}

/// Serves `/live`, `/ready` and `/metrics` with one worker.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_management(
    listener: HttpListener,
    limits: &Limits,
    readiness: &CheckReadiness,
    registry: Arc<Registry>,
) -> io::Result<HttpServer> {
    let (readiness, registry) = (readiness.clone(), Data::from(registry));
    // Its metrics are in no registry: they describe the API listener.
    let log = RequestLog { level: Level::DEBUG, logged: RequestLogFilter::default(), metrics: Arc::default() };
    let settings = WorkerSettings { limits: limits.management(), tls: None, log };
    start_workers(listener, &settings, move |log| {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .app_data(registry.clone())
            .configure(routes::management)
            .wrap_fn(middleware::catch_panics)
            .wrap_fn(move |request, service| request_log::record(&log, TraceSettings::default(), request, service))
    })
}
