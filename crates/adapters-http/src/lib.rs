//! The HTTP interface of the animal store: `/v1` for clients, `/live`, `/ready` and `/metrics` for operators.
//!
//! Handlers are named after the operations of the interface. A request passes [`serve_api`], the routes, `auth`, a
//! handler in `pets` and a use case. Only this crate contains status codes, headers and wire formats. Every response
//! that is not a success carries the Error body, made in one place from an `ApiError` that cannot contain internal
//! text.
//!
//! The wings, each with its own page: `middleware`, `rate_limits`, `traces`, `metrics`, `openapi`, `cors`,
//! `explorer` and `compression`.

mod auth;
mod body;
mod compression;
mod cors;
mod error;
mod explorer;
#[cfg(any(fuzzing, clippy))]
pub mod fuzzing;
mod header_lists;
mod health;
mod limits;
mod metrics;
mod middleware;
mod openapi;
mod pets;
mod public_url;
mod rate_limits;
mod routes;
mod serve;
mod traces;

pub use animal_store_http1::{
    ConnectionLimits, CurrentTlsIdentity, HttpListener, HttpServer, TlsFiles, TlsFilesError,
    TlsIdentity,
};
pub use cors::{AllowedOrigins, AllowedOriginsError};
pub use limits::{Limits, RateLimit, Reloaded, management_limits, reloaded};
pub use middleware::{
    in_flight::InFlight,
    trusted_proxies::{TrustedProxies, TrustedProxiesError},
};
pub use openapi::{OPENAPI_DOCUMENT, openapi_document};
pub use public_url::{PublicUrl, PublicUrlError};
pub use rate_limits::{AuthFailureLimiter, KeyRateLimiter};
pub use routes::UseCases;
pub use serve::{ApiSettings, serve_api, serve_management};
