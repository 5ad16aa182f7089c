//! Authenticates every request under `/v1` by its API key.

use std::{panic::AssertUnwindSafe, sync::Arc};

use actix_web::{
    Error, ResponseError,
    body::BoxBody,
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
    web::Data,
};
use animal_store_app::{ApiKey, ApiToken, Authenticate};
use futures_util::FutureExt;
use tracing::Instrument;

use super::caught;
use crate::{
    bearer_token,
    client_address::TrustedProxies,
    error::{ApiError, ExceededLimit},
    rate_limits::AuthFailureLimiter,
    request_limits::RequestLimits,
    request_record::RequestRecord,
    traces,
    use_cases::UseCases,
};

/// Admits a request with a valid API key and adds the key to its record. Rejects every other request, and those of
/// a key or an address beyond its limits.
pub(crate) async fn authenticate(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let limits = data::<RequestLimits>(&request).clone();
    let live = limits.live.load_full();
    let failures = live.auth_failures.as_deref();
    let finding = find_key(&request, failures, &limits.proxies);
    let finding = finding.instrument(traces::authentication_span());
    let found = AssertUnwindSafe(finding).catch_unwind().await;
    let key = match caught(found).flatten() {
        Ok(key) => key,
        Err(error) => return Ok(request.error_response(error)),
    };
    RequestRecord::of(&request).api_key = Some(Arc::clone(&key));
    let Some(_permit) = limits.key_shares.acquire(&key.id) else {
        return Ok(request.error_response(ApiError::Overloaded(ExceededLimit::KeyShare)));
    };
    let Some(limiter) = &live.rate_limit else {
        return next.call(request).await;
    };
    let left = limiter.take(&key.id);
    let mut response = match left {
        Some(_) => next.call(request).await?,
        None => request.error_response(ApiError::RateLimited),
    };
    limiter.add_fields(response.headers_mut(), left);
    Ok(response)
}

/// Finds the API key, unless the address of the client has failed too often. Every 401 counts as a failure of the
/// address. A failed lookup, which is a 5xx, does not count.
async fn find_key(
    request: &ServiceRequest,
    failures: Option<&AuthFailureLimiter>,
    proxies: &TrustedProxies,
) -> Result<Arc<ApiKey>, ApiError> {
    let token = bearer_token::parse(request.headers());
    let authenticate = &data::<UseCases>(request).authenticate;
    let counted = failures.and_then(|limiter| Some((limiter, proxies.client_of(request)?)));
    let Some((limiter, client)) = counted else {
        return look_up(authenticate, token).await;
    };
    let attempt = if let Some(attempt) = limiter.try_begin(client)? {
        attempt
    } else {
        if let Ok(token) = &token
            && let Some(key) = authenticate.execute_from_memory(token)
        {
            return Ok(key);
        }
        limiter.begin(client).await?
    };
    let found = look_up(authenticate, token).await;
    if let Err(error) = &found
        && error.status_code() == StatusCode::UNAUTHORIZED
    {
        attempt.fail();
    }
    found
}

async fn look_up(
    authenticate: &Authenticate,
    token: Result<ApiToken, ApiError>,
) -> Result<Arc<ApiKey>, ApiError> {
    Ok(authenticate.execute(&token?).await?)
}

fn data<T: 'static>(request: &ServiceRequest) -> &Data<T> {
    request.app_data().expect("`serve_api` sets the data")
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use actix_web::{
        App,
        http::header::AUTHORIZATION,
        test::{TestRequest, call_service, init_service},
    };
    use animal_store_app::{
        ports::{MockApiKeyDirectory, MockPetRepository},
        test_support::{api_key, api_key_id, unrecorded_uses},
    };
    use arc_swap::ArcSwap;
    use tokio::time::advance;

    use super::*;
    use crate::{
        live::Live,
        middleware::in_flight::KeyShares,
        rate_limits::{KeyRateLimiter, RateLimit},
        routes,
    };

    /// A directory with one key, whose token is `known`.
    fn directory() -> MockApiKeyDirectory {
        let mut directory = MockApiKeyDirectory::new();
        let known = ApiToken::parse("known".into()).expect("a token").digest();
        directory
            .expect_find()
            .returning(move |digest| Ok((digest == known).then(|| Arc::new(api_key("key")))));
        directory
    }

    /// The clock stands still, so that the key has one request. A client that goes too fast learns nothing else.
    #[tokio::test(start_paused = true)]
    async fn an_unknown_key_then_its_share_then_its_rate_are_refused_before_the_route() {
        let limiter = KeyRateLimiter::new(RateLimit {
            per_second: NonZeroU32::MIN,
            burst: NonZeroU32::MIN,
        });
        let live = Live {
            rate_limit: Some(Arc::new(limiter)),
            ..Live::default()
        };
        let limits = Data::new(RequestLimits {
            key_shares: KeyShares::new(1, 1),
            live: Arc::new(ArcSwap::from_pointee(live)),
            proxies: TrustedProxies::default(),
            max_body_bytes: 2,
        });
        let pets = Arc::new(MockPetRepository::new());
        let use_cases = UseCases::new(pets, Arc::new(directory()), unrecorded_uses());
        let app = App::new()
            .app_data(Data::new(use_cases))
            .app_data(Data::clone(&limits))
            .configure(|config| routes::api(config, true));
        let service = init_service(app).await;
        let send = async |token| {
            let request = TestRequest::with_uri("/v1/nowhere")
                .insert_header((AUTHORIZATION, format!("Bearer {token}")));
            let response = call_service(&service, request.to_request()).await;
            let logged = RequestRecord::of(response.request()).api_key.clone();
            assert_eq!(logged.is_some(), token == "known");
            let error = ApiError::of(response.response()).expect("an error");
            (response.status().as_u16(), error.exceeded_limit())
        };

        assert_eq!(send("known").await, (404, None));
        let key = api_key_id("key");
        let share = limits.key_shares.acquire(&key).expect("the only one");
        assert_eq!(send("unknown").await, (401, None));
        let beyond_its_share = (503, Some(ExceededLimit::KeyShare));
        assert_eq!(send("known").await, beyond_its_share);
        drop(share);
        let beyond_its_rate = (429, Some(ExceededLimit::RateLimit));
        assert_eq!(send("known").await, beyond_its_rate);
        advance(Duration::from_secs(1)).await;
        assert_eq!(send("known").await, (404, None));
    }
}
