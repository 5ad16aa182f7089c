//! The HTTP interface of the animal store: `/v1` for clients, `/live`, `/ready` and `/metrics` for operators.
//!
//! Handlers are named after the operations of the interface. A request passes [`serve_api`], the routes, `middleware`, a
//! handler in `pets` and a use case. Only this crate contains status codes, headers and wire formats. Every response
//! that is not a success carries the Error body, made in one place from an `ApiError` that cannot contain internal
//! text.
//!
//! The wings, each with its own page: `middleware`, `rate_limits`, `traces`, `metrics`, `openapi`,
//! `explorer` and `compression`.

mod access;
mod bearer_token;
mod body;
mod client_address;
mod compression;
mod content_type;
mod error;
mod explorer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod header_lists;
mod health;
mod live;
mod metrics;
mod middleware;
mod openapi;
mod origins;
mod pets;
mod public_url;
mod rate_limits;
mod request_limits;
mod request_record;
mod routes;
mod serve;
mod settings;
mod traces;
mod use_cases;

pub use client_address::{TrustedProxies, TrustedProxiesError};
pub use openapi::{OPENAPI_DOCUMENT, openapi_document};
pub use origins::{AllowedOrigins, AllowedOriginsError};
pub use public_url::{PublicUrl, PublicUrlError};
pub use rate_limits::RateLimit;
pub use serve::{ApiServer, management_limits, serve_api, serve_management};
pub use settings::ApiSettings;
pub use use_cases::UseCases;
