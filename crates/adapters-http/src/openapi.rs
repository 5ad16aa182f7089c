//! The interface as an OpenAPI 3.1 document.
//!
//! **Problem.** A document that is written by hand drifts from the code.
//!
//! **Invariant.** The document is built from the constants and errors that the responses are made of. Every rule for
//! input that JSON Schema can express is a pattern or a bound; descriptions contain the other rules.
//! `docs/openapi.json` is this document.
//!
//! **Proof.** `server/tests/api/openapi.rs` compares the file. Beside each pattern,
//! `every_text_of_the_pattern_is_valid` passes texts to the parser. `scripts/check-contract` runs generated requests
//! and generated clients.

mod errors;
mod operations;
mod responses;
mod schemas;

use std::sync::LazyLock;

use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;
use utoipa::openapi::OpenApi;

use crate::compression::static_file::StaticFile;

/// Version of the interface, not of the program.
const VERSION: &str = "1.0.0";

const DESCRIPTION: &str = "\
A store catalogue of pets. Every request needs an API key as a bearer token.

`HEAD` is supported wherever `GET` is. Unknown members and parameters are ignored; a known one must not be given \
twice. Every response has an `X-Request-Id`, which is also in the log: the value from the request if that has 1 to \
128 characters of `A-Z a-z 0-9 . _ ~ -`, otherwise a new one. With a valid API key, an unknown path is 404 \
`route_not_found`, and an unsupported method is 405 `method_not_allowed` with `Allow`. The responses to invalid HTTP \
and to a request head that is too large or too slow (400, 431, 408) have no body. Pages of other origins can use the \
API if the operator allows it.";

const TOKEN: &str = "An API key: 1 to 512 characters of `A-Z a-z 0-9 - . _ ~ + /`, which may be followed by `=`";

/// Returns the document as JSON, with one line per member.
///
/// # Panics
/// Never: the document is valid, and every value in it can be written as JSON.
pub fn openapi_document() -> String {
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Animal store",
            "description": DESCRIPTION,
            "contact": { "name": "The maintainers of the animal store" },
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "version": VERSION,
        },
        "servers": [{ "url": "v1", "description": "This instance" }],
        "tags": [{ "name": operations::TAG, "description": "The pets of the store" }],
        "security": [{ "bearer": [] }],
        "paths": {
            "/pets": { "get": operations::list_pets(), "post": operations::create_pet() },
            "/pets/{petId}": { "get": operations::get_pet() },
        },
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": TOKEN },
            },
        },
    });
    // utoipa checks the form of the document and orders the members as the specification does.
    let mut document: OpenApi = serde_json::from_value(document).expect("a valid document");
    let headers = responses::headers().into_iter().map(|(key, header)| (key, header.into()));
    document.components.get_or_insert_default().headers.extend(headers);
    document.to_pretty_json().expect("JSON") + "\n"
}

pub(crate) async fn serve(request: HttpRequest) -> HttpResponse {
    static DOCUMENT: LazyLock<StaticFile> = LazyLock::new(|| StaticFile::new("application/json", openapi_document()));
    DOCUMENT.respond(&request)
}
