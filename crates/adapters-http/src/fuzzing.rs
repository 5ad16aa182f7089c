//! What the fuzz targets in `fuzz/` call, compiled only for them (`cfg(fuzzing)`) and for lints: parsers of untrusted
//! bytes, which are private otherwise. Errors are reduced to the texts that a target checks.

use std::{rc::Rc, sync::Arc};

use actix_http::{Request, Response, body::BoxBody};
use actix_service::Service;
use actix_web::{Error, http::header::HeaderMap};
use animal_store_app::{ApiKeyId, ApiToken, IdempotencyKey};
use animal_store_domain::ListQuery;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{
    Limits, TrustedProxies, auth,
    pets::{idempotency_key, list_query},
    transport::{
        client::Client, connection::Stage, connections::Connections, exchange, framing::Framing,
    },
};

/// Parses the `Authorization` headers.
///
/// # Errors
/// The name of the error.
pub fn parse_authorization(headers: &HeaderMap) -> Result<ApiToken, String> {
    auth::bearer_token(headers).map_err(|error| format!("{error:?}"))
}

/// Parses the `Idempotency-Key` headers. `None`: they are refused.
pub fn parse_idempotency_key(headers: &HeaderMap, api_key: &ApiKeyId) -> Option<IdempotencyKey> {
    idempotency_key::parse(headers, api_key).ok().flatten()
}

/// Parses a query string.
///
/// # Errors
/// The problems of its parameters.
pub fn parse_query(query: &str) -> Result<ListQuery, String> {
    list_query::parse(query)
}

/// Returns how many bytes of a chunked body are accepted, which arrive in pieces.
pub fn accepted_framing<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let mut framing = Framing::default();
    let mut received = Vec::new();
    let mut accepted = 0;
    for piece in pieces {
        received.extend_from_slice(piece);
        accepted += framing.accept(&received[accepted..]);
    }
    accepted
}

/// Serves a connection to its end. A body has at most `max_body_bytes`. Must be called within a local runtime.
pub async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    max_body_bytes: usize,
    service: &impl Service<Request, Response = Response<BoxBody>, Error = Error>,
) {
    let limits = Limits {
        max_body_bytes,
        ..Limits::default()
    };
    let (_stage, stages) = watch::channel(Stage::Serving);
    let slot = Connections::new(
        &limits,
        TrustedProxies::default(),
        Rc::default(),
        Arc::default(),
        stages,
    )
    .admit(None)
    .await;
    let _ = exchange::serve(Client::new(stream, slot), service).await;
}
