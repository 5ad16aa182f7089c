//! The operations of the interface.

use animal_store_domain::PageLimit;
use serde_json::{Value, json};

use super::{
    errors,
    responses::{RATE_FIELDS, SUCCESSOR, error_responses, response},
    schemas::{self, content, reference},
};
use crate::pets::{CURSOR_PATTERN, IDEMPOTENCY_KEY_PATTERN};

pub(super) const TAG: &str = "pets";

pub(super) fn list_pets() -> Value {
    let limit = json!({
        "type": "integer", "minimum": PageLimit::MIN, "maximum": PageLimit::MAX, "default": PageLimit::default().get(),
    });
    let cursor = json!({ "type": "string", "pattern": CURSOR_PATTERN, "examples": ["AAAAAAAAABQ"] });
    let page = content("Pets", &json!([schemas::pet_example()]));
    let mut responses = error_responses(&errors::list_pets(), &[]);
    responses.insert(
        "200".to_owned(),
        response("A page of pets", &[&["Content-Encoding", "Link", "Vary"], RATE_FIELDS].concat(), &page),
    );
    json!({
        "tags": [TAG],
        "operationId": "listPets",
        "summary": "List pets",
        "description":
            "Returns pets in ascending order of id. If more pets follow, `Link` contains the next page \
             (`rel=\"next\"`). Following `Link` until it is absent returns each pet that existed at the first \
             request exactly once, and each later pet at most once. The API key needs the scope `read`.",
        "parameters": [
            parameter("limit", "query", "Maximum number of pets to return", &limit),
            parameter("status", "query", "Filter by status; default: all pets", &reference("PetStatus")),
            parameter("cursor", "query", "Position of the page, from a `next` link; default: the first page", &cursor),
        ],
        "responses": responses,
    })
}

pub(super) fn create_pet() -> Value {
    let key = json!({
        "type": "string", "pattern": IDEMPOTENCY_KEY_PATTERN, "examples": ["8e03978e-40d5-43e8-bc93-6894a57f9324"],
    });
    let created = "The pet, added by this request or by an earlier request with the same `Idempotency-Key`";
    let pet = content("Pet", &schemas::pet_example());
    let mut responses = error_responses(&errors::create_pet(), &[]);
    responses.insert(
        "201".to_owned(),
        response(created, &[&["Location", "Idempotency-Replayed"], RATE_FIELDS].concat(), &pet),
    );
    json!({
        "tags": [TAG],
        "operationId": "createPet",
        "summary": "Add a pet",
        "description":
            "With an `Idempotency-Key`, a retry never adds a second pet. For 24 hours by default, the same key with \
             the same pet returns the response to the first request. While the first request is in flight, the \
             response is 409; with another pet, it is 422. After `outcome_unknown`, the pet may have been added. The \
             API key needs the scope `write`.",
        "parameters": [
            parameter("Idempotency-Key", "header", "A client-chosen key, unique per API key, bare or quoted", &key),
        ],
        "requestBody": {
            "description":
                "A pet as a JSON object of at most 16 KiB, or the limit set by the operator. The content type is \
                 `application/json` or another `application/*+json`, without an encoding. No member may be given \
                 twice.",
            "required": true,
            "content": content("NewPet", &schemas::new_pet_example()),
        },
        "responses": responses,
    })
}

pub(super) fn get_pet() -> Value {
    let headers = ["Deprecation", "Sunset", SUCCESSOR];
    let mut responses = error_responses(&errors::get_pet(), &headers);
    responses.append(&mut error_responses(&errors::common(), &[]));
    let pet = content("Pet", &schemas::pet_example());
    responses.insert("200".to_owned(), response("The pet", &[&headers, RATE_FIELDS].concat(), &pet));
    json!({
        "tags": [TAG],
        "operationId": "getPet",
        "summary": "Get a pet by id",
        "description":
            "Deprecated; to be removed on 2030-12-05. Use `listPets` with `status`. The API key needs the scope \
             `read`. If the operator has removed the operation, the response is 410 `gone`.",
        "deprecated": true,
        "parameters": [parameter("petId", "path", "Id of the pet", &schemas::id())],
        "responses": responses,
    })
}

fn parameter(name: &str, location: &str, description: &str, schema: &Value) -> Value {
    let required = location == "path";
    json!({ "name": name, "in": location, "description": description, "required": required, "schema": schema })
}
