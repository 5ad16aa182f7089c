//! `/live` and `/ready` of the management listener. They need no API key.

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use animal_store_app::{CheckReadiness, ports::Cause};
use futures_util::future::join;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use crate::error::ApiError;

/// Timeout of the probes, which run at the same time.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of the probes of an instance that is draining: it is a 503 whatever they report.
const DRAINING_TIMEOUT: Duration = Duration::from_millis(100);

const READY: &str = "ready";
const UNAVAILABLE: &str = "unavailable";
const DRAINING: &str = "draining";

/// Body of `/ready`, whatever its status code is.
#[derive(Serialize)]
struct ReadinessResponse {
    status: &'static str,
    checks: Checks,
}

#[derive(Serialize)]
struct Checks {
    storage: &'static str,
    keys: &'static str,
}

/// 200: the process can respond.
pub(crate) async fn live() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "live" }))
}

/// 200 if this instance should receive requests, otherwise 503. The request log gets the reason.
pub(crate) async fn ready(readiness: Data<CheckReadiness>) -> HttpResponse {
    let limit = if readiness.is_draining() {
        DRAINING_TIMEOUT
    } else {
        TIMEOUT
    };
    let (storage, keys) = join(
        check("storage", limit, readiness.storage()),
        check("keys", limit, readiness.keys()),
    )
    .await;
    let checks = Checks {
        storage: state(&storage),
        keys: state(&keys),
    };
    let reasons = [storage.err(), keys.err()];
    let reasons: Vec<_> = reasons.into_iter().flatten().collect();
    if readiness.is_draining() {
        refuse(DRAINING, checks, "the instance is shutting down".into())
    } else if reasons.is_empty() {
        respond(READY, checks)
    } else {
        refuse(UNAVAILABLE, checks, reasons.join("; ").into())
    }
}

fn respond(status: &'static str, checks: Checks) -> HttpResponse {
    HttpResponse::Ok().json(ReadinessResponse { status, checks })
}

/// 503. The error carries the status code, Retry-After and, for the request log, the cause.
fn refuse(status: &'static str, checks: Checks, cause: Cause) -> HttpResponse {
    let body = respond(status, checks).into_body();
    HttpResponse::from_error(ApiError::Unavailable(cause)).set_body(body)
}

/// Returns the outcome of a probe in time. A failure is described by the name of the check and its cause.
async fn check(
    name: &str,
    limit: Duration,
    probe: impl Future<Output = Result<(), Cause>>,
) -> Result<(), String> {
    match timeout(limit, probe).await {
        Ok(result) => result.map_err(|cause| format!("{name}: {cause}")),
        Err(_) => Err(format!("{name}: the probe did not respond in time")),
    }
}

const fn state(check: &Result<(), String>) -> &'static str {
    if check.is_ok() { READY } else { UNAVAILABLE }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, future::pending, sync::Arc};

    use actix_web::{body::MessageBody, http::header::RETRY_AFTER};
    use animal_store_app::ports::{MockReadiness, Readiness};
    use async_trait::async_trait;
    use serde_json::Value;

    use super::*;

    struct Frozen;

    #[async_trait]
    impl Readiness for Frozen {
        async fn check(&self) -> Result<(), Cause> {
            pending().await
        }
    }

    fn probe(is_ready: bool) -> Arc<dyn Readiness> {
        let mut probe = MockReadiness::new();
        probe.expect_check().returning(move || {
            if is_ready {
                Ok(())
            } else {
                Err("no connection".into())
            }
        });
        Arc::new(probe)
    }

    /// Returns status code, body and cause.
    async fn respond(readiness: &CheckReadiness) -> (u16, Value, Option<String>) {
        let response = ready(Data::new(readiness.clone())).await;
        let status = response.status().as_u16();
        assert_eq!(response.headers().contains_key(RETRY_AFTER), status == 503);
        let cause = ApiError::of(&response).and_then(Error::source);
        let cause = cause.map(ToString::to_string);
        let body = response.into_body().try_into_bytes();
        let body = serde_json::from_slice(&body.expect("in memory"));
        (status, body.expect("JSON"), cause)
    }

    /// Asserts the response: status code, state of the instance and of both checks, and cause.
    #[track_caller]
    fn assert_response(
        response: (u16, Value, Option<String>),
        code: u16,
        [status, storage, keys]: [&str; 3],
        cause: &str,
    ) {
        let body = json!({ "status": status, "checks": { "storage": storage, "keys": keys } });
        assert_eq!((response.0, &response.1), (code, &body));
        assert_eq!(response.2.unwrap_or_default(), cause);
    }

    #[tokio::test]
    async fn each_check_shows_its_own_state_and_the_cause_names_those_that_failed() {
        let down = UNAVAILABLE;
        for (code, states, cause) in [
            (200, [READY; 3], ""),
            (503, [down, down, READY], "storage: no connection"),
            (503, [down, READY, down], "keys: no connection"),
            (
                503,
                [down; 3],
                "storage: no connection; keys: no connection",
            ),
        ] {
            let [storage, keys] = [states[1], states[2]].map(|state| Some(probe(state == READY)));
            let response = respond(&CheckReadiness::new(storage, keys)).await;
            assert_response(response, code, states, cause);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_does_not_respond_in_time_is_unavailable_and_hides_no_other() {
        let frozen = || Some(Arc::new(Frozen) as Arc<dyn Readiness>);
        let start = tokio::time::Instant::now();
        let response = respond(&CheckReadiness::new(frozen(), Some(probe(true)))).await;
        let cause = "storage: the probe did not respond in time";
        assert_response(response, 503, [UNAVAILABLE, UNAVAILABLE, READY], cause);

        respond(&CheckReadiness::new(frozen(), frozen())).await;
        // The probes run at the same time.
        assert_eq!(start.elapsed(), 2 * TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_draining_instance_is_a_503_that_shows_its_checks_and_waits_for_no_frozen_probe() {
        let readiness = CheckReadiness::new(Some(Arc::new(Frozen)), None);
        readiness.start_draining();
        let start = tokio::time::Instant::now();
        let response = respond(&readiness).await;
        let cause = "the instance is shutting down";
        assert_response(response, 503, [DRAINING, UNAVAILABLE, READY], cause);
        assert_eq!(start.elapsed(), DRAINING_TIMEOUT);
    }
}
