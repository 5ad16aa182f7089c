//! Authenticates every request under `/v1` by an API key as a bearer token (RFC 6750), and gives handlers the proof of
//! its scope.

use std::{panic::AssertUnwindSafe, sync::Arc};

use actix_web::{
    Error, HttpMessage, HttpRequest, ResponseError,
    body::BoxBody,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{AUTHORIZATION, HeaderMap},
    },
    middleware::Next,
    web::Data,
};
use animal_store_app::{ApiKey, ApiToken, ReadAccess, WriteAccess};
use futures_util::FutureExt;
use tracing::Instrument;

use crate::{
    error::ApiError,
    limits::Reloaded,
    metrics::Shed,
    middleware::{caught, in_flight::KeyShares, trusted_proxies::client_address},
    rate_limits::{AuthFailureLimiter, KeyRateLimiter},
    routes::UseCases,
    traces,
};

/// Limits of requests.
pub(crate) struct RequestLimits {
    /// Each worker has its own. All workers share the others.
    pub(crate) key_shares: KeyShares,
    pub(crate) rate_limit: Reloaded<KeyRateLimiter>,
    pub(crate) auth_failures: Reloaded<AuthFailureLimiter>,
    pub(crate) max_body_bytes: usize,
}

/// Admits a request with a valid API key and adds the key to its extensions. Rejects every other request, and those of
/// a key or an address beyond its limits.
pub(crate) async fn authenticate(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let limits = data::<RequestLimits>(&request).clone();
    let finding = find_key(&request, &limits).instrument(traces::authentication_span());
    let key = match caught(AssertUnwindSafe(finding).catch_unwind().await) {
        Ok(Ok(key)) => key,
        Ok(Err(error)) | Err(error) => return Ok(request.error_response(error)),
    };
    request.extensions_mut().insert(Arc::clone(&key));
    let Some(_permit) = limits.key_shares.acquire(&key.id) else {
        return Ok(request.error_response(ApiError::Overloaded(Shed::KeyShare)));
    };
    let Some(limiter) = limits.rate_limit.load_full() else {
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
    limits: &RequestLimits,
) -> Result<Arc<ApiKey>, ApiError> {
    let token = bearer_token(request.headers());
    let authenticate = &data::<UseCases>(request).authenticate;
    let limiter = limits
        .auth_failures
        .load_full()
        .and_then(|limiter| Some((limiter, client_address(request)?)));
    let Some((limiter, client)) = &limiter else {
        return Ok(authenticate.execute(&token?).await?);
    };
    let attempt = if let Some(attempt) = limiter.try_begin(*client)? {
        attempt
    } else if let Ok(token) = &token
        && let Some(key) = authenticate.execute_from_memory(token)
    {
        return Ok(key);
    } else {
        limiter.begin(*client).await?
    };
    let found = match token {
        Ok(token) => authenticate.execute(&token).await.map_err(ApiError::from),
        Err(error) => Err(error),
    };
    let is_unauthorized = found
        .as_ref()
        .is_err_and(|error| error.status_code() == StatusCode::UNAUTHORIZED);
    if is_unauthorized {
        attempt.fail();
    }
    found
}

fn data<T: 'static>(request: &ServiceRequest) -> &Data<T> {
    request.app_data().expect("`serve_api` sets the data")
}

pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<ApiToken, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next().ok_or(ApiError::MissingApiKey)?.as_bytes();
    if values.next().is_some() {
        return Err(ApiError::MalformedApiKey);
    }
    let (scheme, token) = value.split_at(
        value
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(value.len()),
    );
    if !scheme.eq_ignore_ascii_case(b"Bearer") {
        return Err(ApiError::MissingApiKey);
    }
    let token = std::str::from_utf8(token)
        .map_err(|_| ApiError::MalformedApiKey)?
        .trim_start_matches(' ');
    Ok(ApiToken::parse(token.into())?)
}

/// Fails with 403 if the API key of the request does not have the scope `read`.
pub(crate) fn read_access(request: &HttpRequest) -> Result<ReadAccess, ApiError> {
    Ok(ReadAccess::new(&api_key(request))?)
}

/// Fails with 403 if the API key of the request does not have the scope `write`.
pub(crate) fn write_access(request: &HttpRequest) -> Result<WriteAccess, ApiError> {
    Ok(WriteAccess::new(api_key(request))?)
}

pub(crate) fn api_key(request: &HttpRequest) -> Arc<ApiKey> {
    request
        .extensions()
        .get()
        .cloned()
        .expect("every route under `/v1` is behind `authenticate`")
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use actix_web::{
        App,
        http::header::{CONTENT_TYPE, HeaderValue},
        test::{TestRequest, call_service, init_service},
    };
    use animal_store_app::{
        Authenticate, CreatePet, ListPets,
        ports::{MockApiKeyDirectory, MockPetRepository},
        test_support::{api_key, api_key_id, unrecorded_uses},
    };
    use secrecy::ExposeSecret;
    use tokio::time::advance;

    use super::*;
    use crate::{
        limits::{RateLimit, reloaded},
        routes,
    };

    fn token(values: &[&[u8]]) -> Result<String, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(|token| token.secret().expose_secret().to_owned())
    }

    #[test]
    fn the_scheme_may_be_written_in_any_case() {
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            assert_eq!(token(&[format!("{scheme} abc").as_bytes()]).unwrap(), "abc");
        }
    }

    #[test]
    fn no_header_or_another_scheme_is_a_missing_key() {
        for values in [
            &[][..],
            &[&b""[..]],
            &[b"Basic YTpi"],
            &[b"abc"],
            &[b"Bearerabc"],
            &[b"Bearer\tabc"],
        ] {
            assert!(
                matches!(token(values), Err(ApiError::MissingApiKey)),
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_not_a_token_is_malformed() {
        for bad in ["Bearer", "Bearer ", "Bearer a b", "Bearer \ta", "Bearer é"] {
            assert!(
                matches!(token(&[bad.as_bytes()]), Err(ApiError::MalformedApiKey)),
                "{bad:?}"
            );
        }
        assert!(matches!(
            token(&[b"Bearer \xff"]),
            Err(ApiError::MalformedApiKey)
        ));
        assert!(matches!(
            token(&[b"Bearer animalstore_mistyped"]),
            Err(ApiError::UnknownApiKey)
        ));
    }

    #[test]
    fn two_headers_are_malformed_even_if_they_are_equal() {
        for second in [&b"Bearer abc"[..], b"Basic YTpi"] {
            assert!(matches!(
                token(&[b"Bearer abc", second]),
                Err(ApiError::MalformedApiKey)
            ));
        }
    }

    /// The clock stands still, so that the key has one request. A client that goes too fast learns nothing else.
    #[tokio::test(start_paused = true)]
    async fn a_key_beyond_its_rate_is_refused_before_every_other_check() {
        let mut directory = MockApiKeyDirectory::new();
        directory
            .expect_find()
            .returning(|_| Ok(Some(Arc::new(api_key("key")))));
        let (repository, one) = (Arc::new(MockPetRepository::new()), NonZeroU32::MIN);
        let use_cases = UseCases {
            authenticate: Authenticate::new(Arc::new(directory), unrecorded_uses()),
            list_pets: ListPets::new(repository.clone()),
            create_pet: CreatePet::new(repository),
            get_pet: None,
            uses: unrecorded_uses(),
        };
        let limits = RequestLimits {
            key_shares: KeyShares::new(1, 1),
            rate_limit: reloaded(Some(KeyRateLimiter::new(RateLimit {
                per_second: one,
                burst: one,
            }))),
            auth_failures: Reloaded::default(),
            max_body_bytes: 2,
        };
        let app = App::new()
            .app_data(Data::new(use_cases))
            .app_data(Data::new(limits))
            .configure(|config| routes::api(config, None));
        let service = init_service(app).await;
        let mistakes = [
            ("PUT", "/v1/nowhere", "text/plain", 404),
            ("PUT", "/v1/pets", "text/plain", 405),
            ("POST", "/v1/pets", "text/plain", 415),
            ("POST", "/v1/pets", "application/json", 400),
            ("GET", "/v1/pets?limit=0", "text/plain", 400),
            ("GET", "/v1/pets/abc", "text/plain", 410),
        ];
        for (method, path, media_type, status) in mistakes {
            let send = async || {
                let request = TestRequest::with_uri(path)
                    .method(method.parse().unwrap())
                    .set_payload("{}");
                let request = request.insert_header((AUTHORIZATION, "Bearer x"));
                call_service(
                    &service,
                    request
                        .insert_header((CONTENT_TYPE, media_type))
                        .to_request(),
                )
                .await
            };
            assert_eq!(send().await.status(), status);
            let refused = send().await;
            assert_eq!(refused.status(), 429, "{method} {path}");
            assert_eq!(
                super::api_key(refused.request()).id.as_str(),
                "key",
                "it is in the log"
            );
            advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test]
    async fn a_key_beyond_its_share_is_refused_after_an_unknown_key_and_before_every_other_check() {
        let mut directory = MockApiKeyDirectory::new();
        let known = ApiToken::parse("known".into()).expect("a token").digest();
        directory
            .expect_find()
            .returning(move |digest| Ok((digest == known).then(|| Arc::new(api_key("key")))));
        let repository = Arc::new(MockPetRepository::new());
        let use_cases = UseCases {
            authenticate: Authenticate::new(Arc::new(directory), unrecorded_uses()),
            list_pets: ListPets::new(repository.clone()),
            create_pet: CreatePet::new(repository),
            get_pet: None,
            uses: unrecorded_uses(),
        };
        let limits = Data::new(RequestLimits {
            key_shares: KeyShares::new(1, 1),
            rate_limit: Reloaded::default(),
            auth_failures: Reloaded::default(),
            max_body_bytes: 2,
        });
        let app = App::new()
            .app_data(Data::new(use_cases))
            .app_data(Data::clone(&limits))
            .configure(|config| routes::api(config, None));
        let service = init_service(app).await;
        let key = api_key_id("key");
        let _share = limits.key_shares.acquire(&key).expect("the only one");
        for (method, path) in [
            ("PUT", "/v1/nowhere"),
            ("PUT", "/v1/pets"),
            ("POST", "/v1/pets"),
            ("GET", "/v1/pets?limit=0"),
            ("GET", "/v1/pets/abc"),
        ] {
            for (token, status) in [("unknown", 401), ("known", 503)] {
                let request = TestRequest::with_uri(path)
                    .method(method.parse().unwrap())
                    .insert_header((AUTHORIZATION, format!("Bearer {token}")));
                let response = call_service(&service, request.to_request()).await;
                assert_eq!(response.status(), status, "{method} {path} {token}");
                let error = response
                    .response()
                    .error()
                    .and_then(Error::as_error::<ApiError>);
                let is_shed = error.and_then(ApiError::shed) == Some(Shed::KeyShare);
                assert_eq!(is_shed, token == "known", "{method} {path} {token}");
            }
        }
    }
}
