//! What is known of a request, for its line in the log and for the metrics.

use std::{cell::RefMut, sync::Arc};

use actix_web::HttpMessage;
use animal_store_app::{ApiKey, IdempotencyKey};

/// The record of a request, which is in its extensions.
#[derive(Default)]
pub(crate) struct RequestRecord {
    /// The API key, once the request is authenticated.
    pub(crate) api_key: Option<Arc<ApiKey>>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// Whether the response repeats the response to an earlier request.
    pub(crate) replayed: bool,
    /// Whether the operation is deprecated.
    pub(crate) deprecated: bool,
}

impl RequestRecord {
    /// Returns the record of a request, to add to it.
    pub(crate) fn of(request: &impl HttpMessage) -> RefMut<'_, Self> {
        RefMut::map(request.extensions_mut(), |extensions| {
            extensions.get_or_insert_with(Self::default)
        })
    }
}
