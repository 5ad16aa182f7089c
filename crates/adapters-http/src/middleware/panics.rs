//! Turns a panic into a 500. Without this, actix closes the connection without a response.

use std::panic::AssertUnwindSafe;

use actix_web::{
    Error,
    dev::{Service, ServiceRequest, ServiceResponse},
};
use futures_util::FutureExt;

use crate::error::ApiError;

pub(crate) fn catch<S>(
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    // The state of the request is dropped with it. Shared state is valid after a panic.
    AssertUnwindSafe(service.call(request)).catch_unwind().map(|result| {
        result.unwrap_or_else(|_| Err(ApiError::Internal("a panic, logged by the panic hook".into()).into()))
    })
}
