//! `/live` and `/ready` of the management listener. They need no API key.

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use animal_store_app::CheckReadiness;
use serde_json::json;

use crate::error::ApiError;

/// Timeout of all probes together.
const TIMEOUT: Duration = Duration::from_secs(1);

/// 200: the process can respond.
pub(crate) async fn live() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "live" }))
}

/// 200 if this instance should receive requests, otherwise 503.
pub(crate) async fn ready(readiness: Data<CheckReadiness>) -> Result<HttpResponse, ApiError> {
    tokio::time::timeout(TIMEOUT, readiness.execute()).await.map_err(|late| ApiError::Unavailable(late.into()))??;
    Ok(HttpResponse::Ok().json(json!({ "status": "ready" })))
}
