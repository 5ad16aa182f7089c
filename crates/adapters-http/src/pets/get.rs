use actix_web::{HttpRequest, HttpResponse, web::Data};
use animal_store_app::ports::ApiKeyUse;
use animal_store_domain::PetId;
use tracing::Instrument;

use super::{digits, pet_response};
use crate::{auth, error::ApiError, json::json, traces::spans, use_cases::UseCases};

pub(crate) async fn get_pet(use_cases: Data<UseCases>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    // It counts whatever the response is: a client that gets an error has to change as well.
    use_cases.uses.note(&auth::api_key(&request).id, ApiKeyUse::GetPet);
    let access = auth::read_access(&request)?;
    let get_pet = use_cases.get_pet.as_ref().ok_or(ApiError::Gone)?;
    // A text that is not an id belongs to no pet: the interface defines a 404 here, but no 400.
    let id = digits::parse(request.match_info().query("petId"))
        .and_then(|id| PetId::parse(id).ok())
        .ok_or(ApiError::PetNotFound)?;
    let pet = get_pet.execute(&access, id).instrument(spans::storage()).await?.ok_or(ApiError::PetNotFound)?;
    Ok(json(&mut HttpResponse::Ok(), pet_response::pet(&pet)))
}
