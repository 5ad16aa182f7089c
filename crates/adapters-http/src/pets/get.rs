use actix_web::{HttpRequest, HttpResponse, web::Data};
use animal_store_domain::PetId;

use super::pet_response::PetResponse;
use crate::{UseCases, auth::MayRead, digits, error::ApiError};

/// `getPet`
pub(crate) async fn get_pet(
    MayRead(access): MayRead,
    use_cases: Data<UseCases>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    // What cannot be an id is the id of no animal: the operation knows 404, not 400.
    let id = digits::positive(request.match_info().query("petId"))
        .and_then(|id| PetId::parse(id).ok())
        .ok_or(ApiError::PetNotFound)?;
    let pet = use_cases.get_pet.execute(&access, id).await?;
    Ok(HttpResponse::Ok().json(PetResponse::from(&pet)))
}
