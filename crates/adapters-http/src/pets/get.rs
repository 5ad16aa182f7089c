//! `getPet`, which is deprecated (RFC 9745 and RFC 8594).

use actix_web::{
    Error, HttpRequest, HttpResponse,
    body::BoxBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderName, HeaderValue, LINK},
    middleware::Next,
    web::Data,
};
use animal_store_app::ports::ApiKeyUse;
use animal_store_domain::PetId;
use animal_store_pet_json as pet_json;
use tracing::Instrument;

use super::digits;
use crate::{
    access::{Read, api_key},
    error::{ApiError, JSON},
    public_url::PublicUrl,
    request_record::RequestRecord,
    traces,
    use_cases::UseCases,
};

pub(crate) const DEPRECATED_OPERATION: &str = "getPet";

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// 2026-01-01T00:00:00Z
pub(crate) const DEPRECATED_SINCE: &str = "@1767225600";
pub(crate) const REMOVED_ON: &str = "Thu, 05 Dec 2030 00:00:00 GMT";

/// The list of pets, relative to the URI of a request for the operation.
pub(crate) const SUCCESSOR: &str = "../pets";

/// Announces the deprecation in every response of the operation, errors included, and notes which API key uses it: a
/// client that gets an error has to change as well.
pub(crate) async fn announce_deprecation(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let use_cases: &Data<UseCases> = request.app_data().expect("`serve_api` sets the use cases");
    let key = api_key(&request);
    use_cases.uses.note(&key.id, ApiKeyUse::GetPet);
    RequestRecord::of(&request).deprecated = true;
    let mut response = next.call(request).await?;
    let successor = successor_link(&PublicUrl::pets_or(response.request(), SUCCESSOR));
    let successor = HeaderValue::try_from(successor).expect("a URL is ASCII");
    let headers = response.headers_mut();
    headers.insert(DEPRECATION, HeaderValue::from_static(DEPRECATED_SINCE));
    headers.insert(SUNSET, HeaderValue::from_static(REMOVED_ON));
    headers.insert(LINK, successor);
    Ok(response)
}

/// The link to the operation that replaces this one (RFC 5829).
pub(crate) fn successor_link(pets: &str) -> String {
    format!(r#"<{pets}>; rel="successor-version""#)
}

pub(crate) async fn get_pet(
    Read(access): Read,
    use_cases: Data<UseCases>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    // A text that is not an id belongs to no pet: the interface defines a 404 here, but no 400.
    let number = digits::parse(request.match_info().query("petId"));
    let id = PetId::parse(number.ok_or(ApiError::PetNotFound)?);
    let id = id.map_err(|_| ApiError::PetNotFound)?;
    let found = use_cases
        .get_pet
        .execute(&access, id)
        .instrument(traces::storage_span());
    let pet = found.await?.ok_or(ApiError::PetNotFound)?;
    Ok(HttpResponse::Ok()
        .content_type(JSON)
        .body(pet_json::to_vec(&pet)))
}

/// Stands for [`get_pet`] if the operation is not served.
pub(crate) async fn removed(_: Read) -> Result<HttpResponse, ApiError> {
    Err(ApiError::Gone)
}
