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
        response.insert_header((LINK, next_link(PublicUrl::of(&request), query, next)));
    }
    response.content_type(JSON);
    let body = pet_json::list_to_vec(&page.pets);
    Ok(compression::respond(&request, response, body))
}

/// The link to the next page (RFC 8288). Without a public URL it is relative to the URI of the request, so that it is
/// valid behind any base path.
fn next_link(public_url: Option<&PublicUrl>, query: ListQuery, next: PetId) -> String {
    let list = public_url.map_or_else(String::new, |url| url.base() + "pets");
    let mut link = format!("<{list}?limit={}", query.limit.get());
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
            next_link(None, query, next),
            r#"<?limit=7&status=sold&cursor=AAAAAAAAAAE>; rel="next""#
        );
        assert_eq!(
            next_link(None, ListQuery::default(), next),
            r#"<?limit=20&cursor=AAAAAAAAAAE>; rel="next""#
        );
        let public_url = PublicUrl::parse("https://shop.example/api/v1").unwrap();
        assert_eq!(
            next_link(Some(&public_url), query, next),
            r#"<https://shop.example/api/v1/pets?limit=7&status=sold&cursor=AAAAAAAAAAE>; rel="next""#
        );
    }
}
