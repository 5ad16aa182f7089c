//! Serves the routes on a listener, with their settings.

use std::{
    io,
    net::IpAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use actix_web::{App, web::Data};
use animal_store_app::CheckReadiness;
use animal_store_http1::{
    ConnectionLimits, ConnectionMetrics, CurrentTlsIdentity, HttpListener, HttpServer,
    ServerSettings,
};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    client_address::TrustedProxies,
    limits::{Limits, Reloaded, management_limits},
    metrics::{Hosts, HttpMetrics},
    middleware::{
        cors::{self, AllowedOrigins},
        in_flight::{self, InFlight, KeyShares},
        request_log::{self, RequestLog},
    },
    openapi,
    public_url::PublicUrl,
    rate_limits::network,
    request_limits::RequestLimits,
    routes,
    use_cases::UseCases,
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
    let help = "Requests in flight";
    registry.register("requests_in_flight", help, in_flight.all.clone());
    let log = RequestLog {
        is_quiet: false,
        errors_only,
        metrics: Arc::new(HttpMetrics::register(registry)),
    };
    let server = ServerSettings {
        metrics: ConnectionMetrics::register(registry, &limits.connections, tls.as_ref()),
        tls,
        share_of: share_of(proxies.clone()),
        ..server_settings(limits.connections.clone(), log.clone())
    };
    let application = {
        let in_flight = in_flight.clone();
        move || {
            let log = Rc::new(log.clone());
            let in_flight = in_flight.clone();
            let origins = Arc::clone(&origins);
            let workers = limits.connections.running_workers();
            let limits = RequestLimits {
                key_shares: KeyShares::new(limits.max_in_flight_per_key, workers),
                rate_limit: Arc::clone(&limits.rate_limit),
                auth_failures: Arc::clone(&limits.auth_failures),
                max_body_bytes: limits.connections.max_body_bytes,
            };
            // The middleware that is added last runs first.
            App::new()
                .app_data(Data::new(use_cases()))
                .app_data(Data::new(limits))
                .app_data(proxies.clone())
                .app_data(document.clone())
                .app_data(public_url.clone())
                .configure(routes::api)
                .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
                .wrap_fn(move |request, service| cors::apply(origins.load_full(), request, service))
                .wrap_fn(move |request, service| {
                    request_log::record(&log, sample_ratio, request, service)
                })
        }
    };
    let (server, task) = HttpServer::start(listener, &server, application)?;
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
    let readiness = readiness.clone();
    let registry = Data::from(registry);
    let hosts = Data::new(Hosts::on(listener.address));
    // Its metrics are in no registry: they describe the API listener.
    let log = RequestLog {
        is_quiet: true,
        ..RequestLog::default()
    };
    let settings = server_settings(management_limits(), log.clone());
    HttpServer::start(listener, &settings, move || {
        let log = Rc::new(log.clone());
        App::new()
            .app_data(Data::new(readiness.clone()))
            .app_data(registry.clone())
            .app_data(hosts.clone())
            .app_data(TrustedProxies::default())
            .configure(routes::management)
            .wrap_fn(move |request, service| request_log::record(&log, None, request, service))
    })
}

/// Settings of a server that serves HTTP, has no proxies, and whose log and metrics contain refused heads.
fn server_settings(limits: ConnectionLimits, log: RequestLog) -> ServerSettings {
    ServerSettings {
        limits,
        tls: None,
        metrics: ConnectionMetrics::default(),
        share_of: share_of(TrustedProxies::default()),
        on_refusal: Arc::new(move |client, status| log.record_refusal(client, status)),
    }
}

/// The connections of a network share their room. The clients of a proxy have its address, so each of its connections
/// has its own share.
fn share_of(proxies: TrustedProxies) -> Arc<dyn Fn(IpAddr) -> Option<IpAddr> + Send + Sync> {
    Arc::new(move |client| (!proxies.contains(client)).then(|| network(client)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_an_ipv4_address_or_a_network_of_64_bits_and_none_that_of_a_proxy() {
        let proxies = TrustedProxies::parse(&["10.0.0.0/8".to_owned()]).expect("a network");
        let share_of = share_of(proxies);
        for (client, share) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::ffff:2", Some("2001:db8::")),
            ("2001:db8:0:1::1", Some("2001:db8:0:1::")),
            ("10.0.0.1", None),
        ] {
            let [client, share] = [Some(client), share]
                .map(|text| text.map(|text| text.parse::<IpAddr>().expect("an address")));
            assert_eq!(client.and_then(|client| share_of(client)), share);
        }
    }
}
