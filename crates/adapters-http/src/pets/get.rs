use actix_web::{HttpRequest, HttpResponse, web::Data};
use animal_store_domain::PetId;

use super::{digits, pet_response};
use crate::{auth, error::ApiError, json::json, use_cases::UseCases};

pub(crate) async fn get_pet(use_cases: Data<UseCases>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let access = auth::read_access(&request)?;
    // A text that is not an id belongs to no pet: the interface defines a 404 here, but no 400.
    let id = digits::parse(request.match_info().query("petId"))
        .and_then(|id| PetId::parse(id).ok())
        .ok_or(ApiError::PetNotFound)?;
    let pet = use_cases.get_pet.execute(&access, id).await?;
    Ok(json(&mut HttpResponse::Ok(), pet_response::pet(&pet)))
}
