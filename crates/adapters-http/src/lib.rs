//! The HTTP interface of the animal store: `/v1` for clients, `/live` and `/ready` for operators.
//!
//! Handlers are named after the operations of the interface. A request passes [`serve_api`], the routes, `auth`, a
//! handler in `pets` and a use case. Only this crate contains status codes, headers and wire formats. Every response
//! that is not a success carries the Error body, made in one place from an `ApiError` that cannot contain internal
//! text.
//!
//! The wings, each with its own page: `middleware`, `transport`, `openapi`, `cors`, `explorer`, `compression`.

mod auth;
mod body;
mod compression;
mod cors;
mod error;
mod explorer;
mod health;
mod json;
mod limits;
mod middleware;
mod openapi;
mod pets;
mod routes;
mod serve;
mod transport;
mod use_cases;

pub use cors::{AllowedOrigins, Origin, OriginError};
pub use limits::Limits;
pub use middleware::{
    in_flight::InFlight,
    trusted_proxies::{TrustedProxies, TrustedProxiesError},
};
pub use openapi::openapi_document;
pub use serve::{HttpServer, HttpServerHandle, serve_api, serve_management};
pub use use_cases::UseCases;
