//! The interface, row by row, over a real socket through the real application.
//!
//! A rule that a unit test covers value by value appears here with a few rows, which prove the wiring. Only the tests
//! under [`storage`] depend on the storage backend, which `TEST_STORAGE_BACKEND` names (`memory` by default).

mod authentication;
mod body_size;
mod bounds;
mod check_order;
mod compression;
mod cors;
mod deprecation;
mod drain;
mod explorer;
mod headers;
mod idempotency_header;
mod invalid_pets;
mod invalid_queries;
mod link;
mod management;
mod media_types;
mod metrics;
mod openapi;
mod rate_limits;
mod raw_http;
mod raw_requests;
mod raw_uploads;
mod routes;
mod slow_clients;
mod storage;
mod test_app;
