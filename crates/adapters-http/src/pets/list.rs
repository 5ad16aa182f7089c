//! `listPets`, with the link to the next page.

use std::fmt::Write;

use actix_web::{HttpRequest, HttpResponse, http::header::LINK, web::Data};
use animal_store_domain::{ListQuery, PetId};
use animal_store_pet_json as pet_json;
use tracing::Instrument;

use super::list_query;
use crate::{
    access::Read,
    compression,
    error::{ApiError, JSON},
    public_url::PublicUrl,
    traces,
    use_cases::UseCases,
};

pub(crate) async fn list_pets(
    Read(access): Read,
    use_cases: Data<UseCases>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let query = list_query::parse(request.query_string()).map_err(ApiError::InvalidQuery)?;
    let page = use_cases
        .list_pets
        .execute(&access, query)
        .instrument(traces::storage_span())
        .await?;
    let mut response = HttpResponse::Ok();
    if let Some(next) = page.next {
        // Relative to the URI of the request, the list is an empty reference.
        let pets = PublicUrl::pets_or(&request, "");
        response.insert_header((LINK, next_link(&pets, query, next)));
    }
    response.content_type(JSON);
    let body = pet_json::list_to_vec(&page.pets);
    Ok(compression::respond(&request, response, body))
}

/// The link to the next page (RFC 8288).
fn next_link(pets: &str, query: ListQuery, next: PetId) -> String {
    let mut link = format!("<{pets}?limit={}", query.limit.get());
    if let Some(status) = query.status {
        let _ = write!(link, "&status={}", status.as_str());
    }
    let _ = write!(
        link,
        "&cursor={}>; rel=\"next\"",
        list_query::encode_cursor(next)
    );
    link
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{PageLimit, PetStatus};

    use super::*;

    #[test]
    fn the_link_repeats_the_query_and_adds_the_cursor() {
        let next = PetId::parse(1).unwrap();
        let query = ListQuery {
            limit: PageLimit::parse(7).unwrap(),
            status: Some(PetStatus::Sold),
            after: None,
        };

        assert_eq!(
            next_link("", query, next),
            r#"<?limit=7&status=sold&cursor=AAAAAAAAAAE>; rel="next""#
        );
        assert_eq!(
            next_link("", ListQuery::default(), next),
            r#"<?limit=20&cursor=AAAAAAAAAAE>; rel="next""#
        );
        assert_eq!(
            next_link("https://shop.example/v1/pets", query, next),
            r#"<https://shop.example/v1/pets?limit=7&status=sold&cursor=AAAAAAAAAAE>; rel="next""#
        );
    }
}
