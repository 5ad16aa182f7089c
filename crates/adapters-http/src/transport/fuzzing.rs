//! Serves bytes that arrive in pieces, and records the requests that reach the application.

use std::{cell::RefCell, io, rc::Rc, sync::Arc};

use actix_http::{HttpMessage, Request, Response, ServiceConfig, body::BoxBody};
use actix_service::fn_service;
use actix_web::Error;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::io::{join, sink};
use tokio_util::io::StreamReader;
use tracing::Level;

use super::{client::Client, connections::Connections, exchange::serve};
use crate::{Limits, LoggedRequests, RequestLogFilter, body::declared_length, middleware::request_log::RequestLog};

/// The same as in [`Limits::MINIMAL`].
const MAX_BODY_BYTES: u64 = 1024;

/// Returns the method, the target and the body of each request: `None`, if the body is not complete. No piece may be
/// longer than 8 KiB. Must be called within a local runtime.
pub async fn serve_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]> + Unpin) -> Vec<(String, Option<Vec<u8>>)> {
    let requests = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&requests);
    let service = fn_service(move |mut request: Request| {
        let recorded = Rc::clone(&recorded);
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let is_unfinished = declared_length(request.headers()).is_some_and(|length| length > MAX_BODY_BYTES);
            let (is_expected, mut payload) = (request.head().expect(), request.take_payload());
            let mut body = (!is_unfinished).then(Vec::new);
            while let Some(bytes) = &mut body {
                let next = payload.next();
                match if is_expected { next.await } else { next.now_or_never().flatten() } {
                    Some(Ok(chunk)) if (bytes.len() + chunk.len()) as u64 <= MAX_BODY_BYTES => {
                        bytes.extend_from_slice(&chunk);
                    }
                    Some(_) => body = None,
                    None => break,
                }
            }
            recorded.borrow_mut().push((line, body));
            Ok::<_, Error>(Response::<BoxBody>::ok())
        }
    });
    let logged = RequestLogFilter::new(LoggedRequests::All);
    let log = Rc::new(RequestLog { level: Level::DEBUG, logged, metrics: Arc::default() });
    let slot = Connections::new(&Limits::MINIMAL, log, Arc::default(), Arc::default()).admit(None).await;
    let stream = join(StreamReader::new(stream::iter(pieces.map(io::Result::Ok))), sink());
    let _ = serve(Client::new(stream, slot, ServiceConfig::default()), &service).await;
    requests.take()
}
