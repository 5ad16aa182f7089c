//! What the fuzz targets in `fuzz/` call, compiled only for them (`cfg(fuzzing)`): parsers of untrusted bytes, which
//! are private otherwise. Errors are reduced to the texts that a target checks.

use std::{cell::RefCell, io, rc::Rc, sync::Arc};

use actix_http::{Request, Response, ServiceConfig, body::BoxBody};
use actix_service::fn_service;
use actix_web::{
    Error,
    http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
    web::Bytes,
};
use animal_store_app::{ApiKeyId, ApiToken, IdempotencyKey};
use animal_store_domain::{ListQuery, PetId};
use futures_util::{StreamExt, stream};
use tokio::io::{join, sink};
use tokio_util::io::StreamReader;
use tracing::Level;

use crate::{
    Limits, RequestLogFilter, auth,
    error::ApiError,
    middleware::request_log::RequestLog,
    pets::{
        idempotency_key::{self, IDEMPOTENCY_KEY},
        list_query,
    },
    transport::{client::Client, connections::Connections, exchange::serve},
};

/// Small, so that bodies beyond it are frequent.
const MAX_BODY_BYTES: usize = 1024;

/// Parses the values of `Authorization` headers. `None`: one of them cannot be the value of a header.
pub fn parse_authorization(values: &[&[u8]]) -> Option<Result<ApiToken, String>> {
    let headers = headers(&AUTHORIZATION, values)?;
    Some(auth::bearer_token(&headers).map_err(|error| format!("{error:?}")))
}

/// Parses the value of an `Idempotency-Key` header. `None`: it cannot be the value of a header. `Some(None)`: the key
/// is refused.
pub fn parse_idempotency_key(value: &[u8], api_key: &ApiKeyId) -> Option<Option<IdempotencyKey>> {
    let headers = headers(&IDEMPOTENCY_KEY, &[value])?;
    Some(idempotency_key::parse(&headers, api_key).ok().flatten())
}

/// Parses a query string.
///
/// # Errors
/// The problems of its parameters.
///
/// # Panics
/// If the query is refused for another reason.
pub fn parse_query(query: &str) -> Result<ListQuery, String> {
    list_query::parse(query).map_err(|error| match error {
        ApiError::InvalidQuery(problems) => problems,
        other => panic!("another error: {other:?}"),
    })
}

/// Returns the position of a cursor. `Some(None)` is the start of the list.
pub fn decode_cursor(cursor: &str) -> Option<Option<PetId>> {
    list_query::decode_cursor(cursor).ok()
}

/// Returns the cursor of a position.
pub fn encode_cursor(after: PetId) -> String {
    list_query::encode_cursor(after)
}

fn headers(name: &HeaderName, values: &[&[u8]]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name.clone(), HeaderValue::from_bytes(value).ok()?);
    }
    Some(headers)
}

/// Serves the bytes of a connection, which arrive in pieces.
///
/// Returns the method, the target and the body of each request: `None`, if the body is not complete. No piece may be
/// longer than 8 KiB. Must be called within a local runtime.
pub async fn serve_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]> + Unpin) -> Vec<(String, Option<Vec<u8>>)> {
    let requests = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&requests);
    let service = fn_service(move |mut request: Request| {
        let recorded = Rc::clone(&recorded);
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let body = request.take_payload().next().await.unwrap_or(Ok(Bytes::new()));
            recorded.borrow_mut().push((line, body.ok().map(Into::into)));
            Ok::<_, Error>(Response::<BoxBody>::ok())
        }
    });
    let log = Rc::new(RequestLog { level: Level::DEBUG, logged: RequestLogFilter::default(), metrics: Arc::default() });
    let limits = Limits { max_body_bytes: MAX_BODY_BYTES, ..Limits::default() };
    let slot = Connections::new(&limits, log, Arc::default()).admit(None).await;
    let stream = join(StreamReader::new(stream::iter(pieces.map(io::Result::Ok))), sink());
    let _ = serve(Client::new(stream, slot, ServiceConfig::default()), &service).await;
    requests.take()
}
