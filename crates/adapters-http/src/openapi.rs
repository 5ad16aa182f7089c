//! The interface as an OpenAPI 3.1 document, made of the same constants, errors and rules as the answers.
//!
//! Every rule on input that JSON Schema can express is a pattern or a bound in it; prose is for the others.

mod answers;
mod operations;
mod schemas;

use std::sync::LazyLock;

use actix_web::{HttpRequest, HttpResponse};
use utoipa::openapi::{
    ComponentsBuilder, ContactBuilder, InfoBuilder, LicenseBuilder, OpenApiBuilder, PathItem, PathsBuilder,
    ServerBuilder,
    path::HttpMethod,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};

use crate::static_file::StaticFile;

/// Of the interface, not of the program.
const VERSION: &str = "1.0.0";

const DESCRIPTION: &str = "\
A store catalogue of animals. Every request carries an API key as a bearer token.

Beyond what is written here, `HEAD` works wherever `GET` does; unknown members and parameters are ignored, and a known \
one that is given twice is refused. An `X-Request-Id` of 1 to 128 of `A-Z a-z 0-9 . _ ~ -` names the request, in its answer \
and in the log. With a valid API key, other paths are answered 404 `route_not_found` and other methods \
405 `method_not_allowed` with `Allow`. Answers to requests that are no HTTP, or whose head is too large or too slow (400, \
431, 408), come without a body. Pages of other origins may use the interface where the operator allows it.";

const BEARER: &str = "bearer";

/// The document, as JSON with a line for each member.
///
/// # Panics
/// Never: it has nothing that JSON has not.
pub fn openapi_document() -> String {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, of 1 to 512 characters: `A-Z a-z 0-9 - . _ ~ + /`, and `=` at its end."));
    let components = schemas::all()
        .into_iter()
        .fold(ComponentsBuilder::new(), |components, (name, schema)| components.schema(name, schema));
    let components = answers::headers()
        .into_iter()
        .fold(components, |components, (name, header)| components.header(name, header.build()));
    let mut pets = PathItem::new(HttpMethod::Get, operations::list_pets());
    pets.merge_operations(PathItem::new(HttpMethod::Post, operations::create_pet()));
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let contact = ContactBuilder::new().name(Some("The maintainers of the animal store")).build();
    let info = InfoBuilder::new().title("Animal store").version(VERSION).description(Some(DESCRIPTION));
    let document = OpenApiBuilder::new()
        .info(info.license(Some(license)).contact(Some(contact)))
        .servers(Some([ServerBuilder::new().url("v1").description(Some("The instance that serves this")).build()]))
        .tags(Some([TagBuilder::new().name(operations::TAG).description(Some("The animals of the store")).build()]))
        .security(Some([SecurityRequirement::new(BEARER, [] as [&str; 0])]))
        .paths(
            PathsBuilder::new()
                .path("/pets", pets)
                .path("/pets/{petId}", PathItem::new(HttpMethod::Get, operations::get_pet())),
        )
        .components(Some(components.security_scheme(BEARER, SecurityScheme::Http(bearer.build())).build()))
        .build();
    document.to_pretty_json().expect("JSON") + "\n"
}

/// `GET /openapi.json`
pub(crate) async fn serve(request: HttpRequest) -> HttpResponse {
    static DOCUMENT: LazyLock<StaticFile> = LazyLock::new(|| StaticFile::new("application/json", openapi_document()));
    DOCUMENT.answer(&request)
}
