//! The interface, row by row, over a real socket through the real application.
//!
//! The same tests run against every storage backend: `TEST_STORAGE_BACKEND` names it, `memory` by default.

mod authentication;
mod body_size;
mod bounds;
mod category_id;
mod check_order;
mod client;
mod compression;
mod cors;
mod create_pet;
mod create_pet_invalid;
mod deprecation;
mod error_messages;
mod errors;
mod explorer;
mod get_pet;
mod headers;
mod idempotency;
mod idempotency_header;
mod idempotency_races;
mod json_syntax;
mod link;
mod list_pets;
mod list_pets_invalid;
mod management;
mod media_types;
mod names;
mod openapi;
mod pagination;
mod raw_connection;
mod raw_http;
mod raw_requests;
mod raw_uploads;
mod shutdown;
mod slow_clients;
mod test_app;
