//! What the fuzz targets in `fuzz/` call, compiled only for them (feature `fuzzing`).

use std::sync::Arc;

use actix_http::{Request, Response, body::BoxBody};
use actix_service::Service;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{
    connection::Stage, exchange::Exchange, framing::Framing, limits::ConnectionLimits, pool::Pool,
    settings::ServerSettings,
};

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
    service: &impl Service<Request, Response = Response<BoxBody>, Error = Response<BoxBody>>,
) {
    let limits = ConnectionLimits {
        max_body_bytes,
        ..ConnectionLimits::default()
    };
    let (_stage, stages) = watch::channel(Stage::Serving);
    let settings = ServerSettings {
        limits,
        ..ServerSettings::default()
    };
    let slot = Pool::new(settings, Arc::default(), stages)
        .admit(None)
        .await;
    let _ = Exchange::new(stream, slot).serve(service).await;
}
