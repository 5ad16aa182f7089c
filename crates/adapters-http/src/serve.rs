//! Serves the routes on a listener, with their settings.

use std::{io, net::IpAddr, rc::Rc, sync::Arc, time::Duration};

use actix_web::{App, web::Data};
use animal_store_app::CheckReadiness;
use animal_store_http1::{
    ConnectionLimits, ConnectionMetrics, CurrentTlsIdentity, HttpListener, HttpServer,
    ServerSettings,
};
use arc_swap::ArcSwap;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tracing::Level;

use crate::{
    client_address::TrustedProxies,
    live::Live,
    metrics::{Hosts, HttpMetrics},
    middleware::{
        cors,
        in_flight::{self, InFlight, KeyShares},
        request_log::{self, RequestLog},
    },
    openapi,
    rate_limits::network,
    request_limits::RequestLimits,
    routes,
    settings::ApiSettings,
    use_cases::UseCases,
};

const MANAGEMENT_CONNECTIONS: usize = 100;

/// Timeout of the management listener. A probe takes one second at most.
const MANAGEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the limits of the management listener.
pub fn management_limits() -> ConnectionLimits {
    ConnectionLimits {
        max_connections: MANAGEMENT_CONNECTIONS,
        head_timeout: MANAGEMENT_TIMEOUT,
        body_timeout: MANAGEMENT_TIMEOUT,
        keep_alive: MANAGEMENT_TIMEOUT,
        response_timeout: 4 * MANAGEMENT_TIMEOUT,
        ..ConnectionLimits::default()
    }
}

/// The API, which is served. If it is dropped, its server stops.
pub struct ApiServer {
    /// The server of its connections.
    pub server: HttpServer,
    in_flight: InFlight,
    live: Arc<ArcSwap<Live>>,
}

impl ApiServer {
    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> i64 {
        self.in_flight.count()
    }

    /// Takes over the settings that can be reloaded, for the next requests.
    pub fn reload(&self, settings: &ApiSettings) {
        let live = self.live.load().replaced_by(settings);
        self.live.store(Arc::new(live));
    }
}

/// Serves the interface, by HTTPS if there is an identity. `use_cases` is called once in each worker. The metrics are
/// added to `registry`. The task ends with the server.
///
/// # Errors
/// If the listener cannot be used.
///
/// # Panics
/// Outside of a runtime.
pub fn serve_api<F>(
    listener: HttpListener,
    settings: ApiSettings,
    tls: Option<CurrentTlsIdentity>,
    registry: &mut Registry,
    use_cases: F,
) -> io::Result<(ApiServer, JoinHandle<io::Result<()>>)>
where
    F: Fn() -> UseCases + Clone + Send + 'static,
{
    let registry = registry.sub_registry_with_prefix("http");
    let in_flight = InFlight::new(settings.max_in_flight);
    let help = "Requests in flight";
    registry.register("requests_in_flight", help, in_flight.all.clone());
    let live = Arc::new(ArcSwap::from_pointee(
        Live::default().replaced_by(&settings),
    ));
    let log = RequestLog {
        level: Level::INFO,
        proxies: settings.proxies.clone(),
        live: Arc::clone(&live),
        metrics: Arc::new(HttpMetrics::register(registry)),
    };
    let connections = settings.connections.clone();
    let server = ServerSettings {
        metrics: ConnectionMetrics::register(registry, &connections, tls.as_ref()),
        tls,
        share_of: share_of(settings.proxies.clone()),
        ..server_settings(connections, log.clone())
    };
    let document = Data::new(openapi::file(settings.public_url.as_ref()));
    let application = {
        let in_flight = in_flight.clone();
        let live = Arc::clone(&live);
        move || {
            let log = Rc::new(log.clone());
            let in_flight = in_flight.clone();
            let live = Arc::clone(&live);
            let limits = RequestLimits {
                key_shares: KeyShares::new(
                    settings.max_in_flight_per_key,
                    settings.connections.running_workers(),
                ),
                live: Arc::clone(&live),
                proxies: settings.proxies.clone(),
                max_body_bytes: settings.connections.max_body_bytes,
            };
            // The middleware that is added last runs first.
            App::new()
                .app_data(Data::new(use_cases()))
                .app_data(Data::new(limits))
                .app_data(document.clone())
                .app_data(settings.public_url.clone())
                .configure(|config| routes::api(config, settings.serves_get_pet))
                .wrap_fn(move |request, service| in_flight::limit(&in_flight, request, service))
                .wrap_fn(move |request, service| {
                    cors::apply(live.load().origins.as_ref(), request, service)
                })
                .wrap_fn(move |request, service| {
                    request_log::record(&log, settings.sample_ratio, request, service)
                })
        }
    };
    let (server, task) = HttpServer::start(listener, &server, application)?;
    let api = ApiServer {
        server,
        in_flight,
        live,
    };
    Ok((api, task))
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
        level: Level::DEBUG,
        proxies: TrustedProxies::default(),
        live: Arc::default(),
        metrics: Arc::default(),
    };
    let settings = server_settings(management_limits(), log.clone());
    HttpServer::start(listener, &settings, move || {
        let log = Rc::new(log.clone());
        App::new()
            .app_data(Data::new(readiness.clone()))
            .app_data(registry.clone())
            .app_data(hosts.clone())
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
    fn the_management_listener_has_one_worker_and_timeouts_of_seconds() {
        let limits = management_limits();
        assert_eq!([limits.running_workers(), limits.sockets()], [1, 165]);
        let timeouts = [
            limits.head_timeout,
            limits.body_timeout,
            limits.keep_alive,
            limits.response_timeout,
        ];
        assert_eq!(timeouts.map(|timeout| timeout.as_secs()), [2, 2, 2, 8]);
    }

    #[test]
    fn a_share_is_that_of_an_ipv4_address_or_a_network_of_64_bits_and_none_that_of_a_proxy() {
        let proxies = TrustedProxies::parse(&["10.0.0.0/8".to_owned()]).expect("a network");
        let share_of = share_of(proxies);
        for (client, share) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::ffff:2", Some("2001:db8::")),
            ("10.0.0.1", None),
        ] {
            let shared = share_of(client.parse().expect("an address"));
            assert_eq!(shared.map(|share| share.to_string()).as_deref(), share);
        }
    }
}
