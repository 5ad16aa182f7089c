//! `/live` and `/ready`, for whoever starts, stops and routes to the service. No API key is asked for.

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use animal_store_app::CheckReadiness;
use serde::Serialize;

use crate::error::ApiError;

/// How long the probes may take together.
const DEADLINE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct HealthResponse {
    status: &'static str,
}

/// The process runs: 200, as long as it can answer at all.
pub(crate) async fn live() -> HttpResponse {
    HttpResponse::Ok().json(HealthResponse { status: "live" })
}

/// Requests may be sent here: 200, or 503 while they should go elsewhere.
pub(crate) async fn ready(readiness: Data<CheckReadiness>) -> Result<HttpResponse, ApiError> {
    tokio::time::timeout(DEADLINE, readiness.execute()).await.map_err(|late| ApiError::Unavailable(late.into()))??;
    Ok(HttpResponse::Ok().json(HealthResponse { status: "ready" }))
}
