//! The HTTP interface of the animal store: `/v1` for clients, `/live` and `/ready` for operators.
//!
//! Handlers are named after the operations of the interface. This crate alone knows status codes, headers and wire
//! formats; it reaches the rest through the use cases. Every answer that is not a success carries the same Error
//! body, made in one place from an `ApiError` that cannot carry internal text.

mod auth;
mod body;
mod compression;
mod connection;
mod cors;
mod deprecation;
mod digits;
mod error;
mod explorer;
mod framing;
mod health;
mod in_flight;
mod openapi;
mod panics;
mod pets;
mod request_id;
mod request_log;
mod routes;
mod serve;
mod static_file;
mod turns;

use animal_store_app::{Authenticate, CreatePet, GetPet, ListPets};

pub use cors::{AllowedOrigins, Origin, OriginError};
pub use in_flight::InFlight;
pub use openapi::openapi_document;
pub use serve::{HttpServer, HttpServerHandle, Limits, serve_api, serve_management};

/// What the handlers call. Each worker has one of its own.
#[derive(Clone)]
pub struct UseCases {
    /// Checks the API key of every request under `/v1`.
    pub authenticate: Authenticate,
    /// `listPets`
    pub list_pets: ListPets,
    /// `createPet`
    pub create_pet: CreatePet,
    /// `getPet`
    pub get_pet: GetPet,
}
