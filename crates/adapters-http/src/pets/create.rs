//! `createPet`.

use actix_web::{HttpRequest, HttpResponse, http::header::LOCATION, web::Data};
use animal_store_app::ports::{AddPet, AddedPet};
use animal_store_pet_json::{self as pet_json, Subject};
use tracing::Instrument;

use super::idempotency_key::{self, IDEMPOTENCY_REPLAYED};
use crate::{
    access::Write,
    body,
    error::{ApiError, JSON},
    public_url::PublicUrl,
    request_record::RequestRecord,
    traces,
    use_cases::UseCases,
};

pub(crate) async fn create_pet(
    Write(access): Write,
    use_cases: Data<UseCases>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let body = body::read_json(&request)?;
    let idempotency_key = idempotency_key::parse(request.headers(), &access.key().id)?;
    RequestRecord::of(&request)
        .idempotency_key
        .clone_from(&idempotency_key);
    let pet = pet_json::from_slice(&body, Subject::RequestBody).map_err(ApiError::InvalidBody)?;
    let add = use_cases.create_pet.execute(
        &access,
        AddPet {
            pet,
            idempotency_key,
        },
    );
    let AddedPet { pet, replayed } = add.instrument(traces::storage_span()).await?;
    let mut response = HttpResponse::Created();
    if replayed {
        RequestRecord::of(&request).replayed = true;
        response.insert_header((IDEMPOTENCY_REPLAYED, "true"));
    }
    let pets = PublicUrl::pets_or(&request, "pets");
    let location = format!("{pets}/{}", pet.id().get());
    Ok(response
        .insert_header((LOCATION, location))
        .content_type(JSON)
        .body(pet_json::to_vec(&pet)))
}
