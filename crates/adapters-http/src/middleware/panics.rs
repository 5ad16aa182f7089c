//! Turns a panic into a 500. Without this, actix closes the connection without a response.

use std::panic::AssertUnwindSafe;

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
};
use futures_util::FutureExt;

use crate::error::ApiError;

pub(crate) async fn catch<B: MessageBody>(request: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    // The state of the request is dropped with it. Shared state is valid after a panic.
    AssertUnwindSafe(next.call(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(ApiError::Internal("a panic, logged by the panic hook".into()).into()))
}
