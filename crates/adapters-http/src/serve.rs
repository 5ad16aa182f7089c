//! Serves the routes on a listener, with their settings.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use actix_web::{App, web::Data};
use animal_store_app::CheckReadiness;
use prometheus_client::{metrics::gauge::ConstGauge, registry::Registry};
use tokio::task::JoinHandle;

use crate::{
    auth::RequestLimits,
    cors::{self, AllowedOrigins},
    http_server::HttpServer,
    limits::{Limits, Reloaded},
    metrics::{Hosts, HttpMetrics},
    middleware::{
        in_flight::{self, InFlight, KeyShares},
        request_log::{self, RequestLog},
        trusted_proxies::TrustedProxies,
    },
    openapi,
    public_url::PublicUrl,
    routes::{self, UseCases},
    transport::{listener::HttpListener, tls::CurrentTlsIdentity},
};

/// How the API is served.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Limits and timeouts.
    pub limits: Limits,
    /// Serves HTTPS with this identity. `None`: serves HTTP.
    pub tls: Option<CurrentTlsIdentity>,
    /// Origins whose pages may use the interface, too. `None`: responses contain no CORS headers.
    pub origins: Reloaded<AllowedOrigins>,
    /// The URL of `/v1` as clients see it. `None`: references in responses are relative.
    pub public_url: Option<PublicUrl>,
    /// Proxies that may report the addresses of their clients.
    pub proxies: TrustedProxies,
    /// Share of the requests that are traced, from 0 to 1. `None` if traces are off.
    pub sample_ratio: Option<f64>,
    /// Whether a request has a line in the log only if its status is 400 or above. It can change meanwhile.
    pub errors_only: Arc<AtomicBool>,
}

impl ApiSettings {
    /// Takes over what can be replaced while requests are served: limits of rates, origins, and which requests are
    /// logged.
    pub fn change_to(&self, other: &Self) {
        replace(&self.limits.rate_limit, &other.limits.rate_limit);
        replace(&self.limits.auth_failures, &other.limits.auth_failures);
        replace(&self.origins, &other.origins);
        self.errors_only
            .store(other.errors_only.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// An equal value stays, with its state.
fn replace<T: PartialEq>(setting: &Reloaded<T>, other: &Reloaded<T>) {
    let new = other.load_full();
    if *setting.load() != new {
        setting.store(new);
    }
}

/// Serves the interface. `use_cases` is called once in each worker. The metrics are added to `registry`. The task ends
/// with the server.
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
) -> io::Result<(HttpServer, JoinHandle<io::Result<()>>, InFlight)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let ApiSettings {
        limits,
        tls,
        origins,
        public_url,
        proxies,
        sample_ratio,
        errors_only,
    } = settings;
    let document = Data::new(openapi::file(public_url.as_ref()));
    let in_flight = InFlight::new(limits.max_in_flight);
    let registry = registry.sub_registry_with_prefix("http");
    let metrics = Arc::new(HttpMetrics::register(registry));
    let help = "Requests in flight";
    registry.register("requests_in_flight", help, in_flight.all.clone());
    let help = "Maximum number of connections of clients that are served at the same time";
    registry.register(
        "connections_limit",
        help,
        ConstGauge::new(limits.served_connections() as u64),
    );
    if let Some(tls) = &tls {
        let help = "End of the TLS certificate in use, in seconds since 1970";
        registry.register(
            "tls_certificate_expiry_timestamp_seconds",
            help,
            tls.expiry.clone(),
        );
    }
    let log = RequestLog {
        is_quiet: false,
        errors_only,
        metrics,
        ..RequestLog::default()
    };
    let shared = (limits.clone(), in_flight.clone(), proxies.clone());
    let application = move |log| {
        let (limits, in_flight, proxies) = shared.clone();
        let origins = Arc::clone(&origins);
        let limits = RequestLimits {
            key_shares: KeyShares::new(limits.max_in_flight_per_key, limits.running_workers()),
            rate_limit: limits.rate_limit,
            auth_failures: limits.auth_failures,
            max_body_bytes: limits.max_body_bytes,
        };
        // The middleware that is added last runs first.
        App::new()
            .app_data(Data::new(use_cases()))
            .app_data(Data::new(limits))
            .app_data(proxies)
            .app_data(document.clone())
            .app_data(public_url.clone())
            .configure(|config| routes::api(config, public_url.as_ref()))
            .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
            .wrap_fn(move |request, service| cors::apply(origins.load_full(), request, service))
            .wrap_fn(move |request, service| {
                request_log::record(&log, sample_ratio, request, service)
            })
    };
    let (server, task) =
        HttpServer::start(listener, &limits, tls.as_ref(), &proxies, &log, application)?;
    Ok((server, task, in_flight))
}

/// Serves `/live`, `/ready` and `/metrics` with one worker. The task ends with the server.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve_management(
    listener: HttpListener,
    readiness: &CheckReadiness,
    registry: Arc<Registry>,
) -> io::Result<(HttpServer, JoinHandle<io::Result<()>>)> {
    let (readiness, registry) = (readiness.clone(), Data::from(registry));
    let hosts = Data::new(Hosts::on(listener.address));
    // Its metrics are in no registry: they describe the API listener.
    let log = RequestLog {
        is_quiet: true,
        ..RequestLog::default()
    };
    let (limits, proxies) = (Limits::management(), TrustedProxies::default());
    HttpServer::start(listener, &limits, None, &proxies, &log, move |log| {
        App::new()
            .app_data(Data::new(readiness.clone()))
            .app_data(registry.clone())
            .app_data(hosts.clone())
            .configure(routes::management)
            .wrap_fn(move |request, service| request_log::record(&log, None, request, service))
    })
}
