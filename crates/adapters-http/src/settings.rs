//! How the API is served, as plain data.

use std::num::NonZeroU32;

use animal_store_http1::ConnectionLimits;

use crate::{
    client_address::TrustedProxies, origins::AllowedOrigins, public_url::PublicUrl,
    rate_limits::RateLimit,
};

/// How the API is served.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiSettings {
    /// Limits and timeouts of connections.
    pub connections: ConnectionLimits,
    /// Maximum number of requests in flight. Others are rejected with 503.
    pub max_in_flight: usize,
    /// Maximum number of requests of one API key in flight. Each worker has an equal share, at least 1. Others are
    /// rejected with 503.
    pub max_in_flight_per_key: usize,
    /// Maximum rate of the requests of one API key, over all workers. Others are rejected with 429. It can be reloaded.
    pub rate_limit: Option<RateLimit>,
    /// Failed authentications of one client address at once, and per minute after that. Further requests are rejected
    /// with 429. It can be reloaded.
    pub auth_failures: Option<NonZeroU32>,
    /// Origins whose pages may use the interface, too. `None`: responses contain no CORS headers. They can be reloaded.
    pub origins: Option<AllowedOrigins>,
    /// Whether a request has a line in the log only if its status is 400 or above. It can be reloaded.
    pub errors_only: bool,
    /// Whether the deprecated `getPet` is served. Otherwise its responses are 410.
    pub serves_get_pet: bool,
    /// The URL of `/v1` as clients see it. `None`: references in responses are relative.
    pub public_url: Option<PublicUrl>,
    /// Proxies that may report the addresses of their clients.
    pub proxies: TrustedProxies,
    /// Share of the requests that are traced, from 0 to 1. `None` if traces are off.
    pub sample_ratio: Option<f64>,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            max_in_flight: 2000,
            max_in_flight_per_key: 1000,
            rate_limit: None,
            auth_failures: None,
            origins: None,
            errors_only: false,
            serves_get_pet: true,
            public_url: None,
            proxies: TrustedProxies::default(),
            sample_ratio: None,
        }
    }
}
