//! The interface as an OpenAPI 3.1 document.
//!
//! **Problem.** A document that is written by hand differs from the code sooner or later.
//!
//! **Invariant.** The document is built from the constants and errors that the responses are made of. Every rule for input
//! that JSON Schema can express is a pattern or a bound; descriptions contain the other rules. `docs/openapi.json` is this
//! document.
//!
//! **Proof.** `server/tests/api/openapi.rs` compares the file. The tests in `operations.rs` and `schemas.rs` pass texts that
//! match each pattern to the parser. `scripts/check-contract` runs generated requests and generated clients.

mod errors;
mod operations;
mod responses;
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

use crate::compression::static_file::StaticFile;

/// Version of the interface, not of the program.
const VERSION: &str = "1.0.0";

const DESCRIPTION: &str = "\
A store catalogue of pets. Every request needs an API key as a bearer token.

`HEAD` is supported wherever `GET` is. Unknown members and parameters are ignored; a known one must not be given twice. \
Every response has an `X-Request-Id`, which is also in the log: the value from the request if that has 1 to 128 \
characters of `A-Z a-z 0-9 . _ ~ -`, otherwise a new one. With a valid API key, an unknown path is 404 `route_not_found`, \
and an unsupported method is 405 `method_not_allowed` with `Allow`. The responses to invalid HTTP and to a request head \
that is too large or too slow (400, 431, 408) have no body. Pages of other origins can use the API if the operator allows \
it.";

const BEARER: &str = "bearer";

/// Returns the document as JSON, with one line per member.
///
/// # Panics
/// Never: every value in the document can be written as JSON.
pub fn openapi_document() -> String {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "An API key: 1 to 512 characters of `A-Z a-z 0-9 - . _ ~ + /`, which may be followed by `=`",
    ));
    let components = ComponentsBuilder::new().schemas_from_iter(schemas::all());
    let components = responses::headers()
        .into_iter()
        .fold(components, |components, (name, header)| components.header(name, header.build()));
    let mut pets = PathItem::new(HttpMethod::Get, operations::list_pets());
    pets.merge_operations(PathItem::new(HttpMethod::Post, operations::create_pet()));
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let contact = ContactBuilder::new().name(Some("The maintainers of the animal store")).build();
    let info = InfoBuilder::new().title("Animal store").version(VERSION).description(Some(DESCRIPTION));
    let document = OpenApiBuilder::new()
        .info(info.license(Some(license)).contact(Some(contact)))
        .servers(Some([ServerBuilder::new().url("v1").description(Some("This instance")).build()]))
        .tags(Some([TagBuilder::new().name(operations::TAG).description(Some("The pets of the store")).build()]))
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
    DOCUMENT.respond(&request)
}
