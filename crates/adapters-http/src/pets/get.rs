//! `getPet`, which is deprecated (RFC 9745 and RFC 8594).

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, LINK},
    middleware::DefaultHeaders,
    web::Data,
};
use animal_store_app::ports::ApiKeyUse;
use animal_store_domain::PetId;
use animal_store_pet_json as pet_json;
use tracing::Instrument;

use super::digits;
use crate::{
    auth,
    error::{ApiError, JSON},
    public_url::PublicUrl,
    routes::UseCases,
    traces,
};

pub(crate) const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
pub(crate) const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// 2026-01-01T00:00:00Z
pub(crate) const DEPRECATED_SINCE: &str = "@1767225600";
pub(crate) const REMOVED_ON: &str = "Thu, 05 Dec 2030 00:00:00 GMT";
pub(crate) const SUCCESSOR: &str = r#"<../pets>; rel="successor-version""#;

/// Headers of every response of the operation, errors included.
pub(crate) fn deprecation_headers(public_url: Option<&PublicUrl>) -> DefaultHeaders {
    let successor = match public_url {
        Some(url) => SUCCESSOR.replacen("../", &url.base(), 1),
        None => SUCCESSOR.to_owned(),
    };
    DefaultHeaders::new()
        .add((DEPRECATION, DEPRECATED_SINCE))
        .add((SUNSET, REMOVED_ON))
        .add((LINK, successor))
}

pub(crate) async fn get_pet(
    use_cases: Data<UseCases>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    // It counts whatever the response is: a client that gets an error has to change as well.
    use_cases
        .uses
        .note(&auth::api_key(&request).id, ApiKeyUse::GetPet);
    let access = auth::read_access(&request)?;
    let get_pet = use_cases.get_pet.as_ref().ok_or(ApiError::Gone)?;
    // A text that is not an id belongs to no pet: the interface defines a 404 here, but no 400.
    let id = digits::parse(request.match_info().query("petId"))
        .and_then(|id| PetId::parse(id).ok())
        .ok_or(ApiError::PetNotFound)?;
    let pet = get_pet
        .execute(&access, id)
        .instrument(traces::storage_span())
        .await?
        .ok_or(ApiError::PetNotFound)?;
    Ok(HttpResponse::Ok()
        .content_type(JSON)
        .body(pet_json::to_vec(&pet)))
}
