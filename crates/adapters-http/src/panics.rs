//! A panic ends its request with a 500, not its connection without an answer.

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
    // What a panic leaves half done is dropped with the request; what is shared defends itself.
    AssertUnwindSafe(next.call(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(ApiError::Internal("a panic, logged where it happened".into()).into()))
}
