use actix_web::{HttpResponse, http::header::LOCATION, web::Data};

use super::{new_pet_request, pet_response::PetResponse};
use crate::{UseCases, auth::MayWrite, body::JsonBody, error::ApiError};

/// `createPet`
pub(crate) async fn create_pet(
    _: MayWrite,
    use_cases: Data<UseCases>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let new_pet = new_pet_request::parse(&body.0)?;
    let pet = use_cases.create_pet.execute(new_pet).await?;
    // Relative to the request's own URI, so that it holds behind any base path.
    let location = format!("pets/{}", pet.id().get());
    Ok(HttpResponse::Created().insert_header((LOCATION, location)).json(PetResponse::from(&pet)))
}
