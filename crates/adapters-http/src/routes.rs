//! The handler of each path and method, and the use cases that the handlers call.

use std::sync::Arc;

use actix_web::{
    FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route,
    http::header::{ALLOW, CACHE_CONTROL},
    middleware::{DefaultHeaders, from_fn},
    web::{self, ServiceConfig},
};
use animal_store_app::{Authenticate, CreatePet, GetPet, ListPets, ports::ApiKeyUses};

use crate::{
    auth::authenticate,
    error::ApiError,
    explorer, health, metrics,
    middleware::Caught,
    openapi,
    pets::{create_pet, get::deprecation_headers, get_pet, list_pets},
    public_url::PublicUrl,
};

/// The use cases that the handlers call. Each worker has its own.
#[derive(Clone)]
pub struct UseCases {
    /// Checks the API key of every request under `/v1`.
    pub authenticate: Authenticate,
    /// `listPets`
    pub list_pets: ListPets,
    /// `createPet`
    pub create_pet: CreatePet,
    /// `getPet`. `None`: the operation was removed.
    pub get_pet: Option<GetPet>,
    /// Records which API keys use `getPet`, so that an operator finds the clients that still have to change.
    pub uses: Arc<dyn ApiKeyUses>,
}

/// Routes of the API listener. Every path under `/v1` needs an API key, unknown paths included.
pub(crate) fn api(config: &mut ServiceConfig, public_url: Option<&PublicUrl>) {
    let deprecation = || deprecation_headers(public_url);
    let pets = read_only("/pets", list_pets)
        .route(web::post().to(Caught(create_pet)))
        .default_service(reject(|| ApiError::MethodNotAllowed("GET, HEAD, POST")));
    let pet = web::resource("/pets/{petId}")
        .route(web::get().to(Caught(get_pet)).wrap(deprecation()))
        .route(web::head().to(Caught(get_pet)).wrap(deprecation()))
        .default_service(reject(|| ApiError::MethodNotAllowed("GET, HEAD")));
    let v1 = web::scope("/v1")
        .wrap(from_fn(authenticate))
        .wrap(DefaultHeaders::new().add((CACHE_CONTROL, "no-store")))
        .service(pets)
        .service(pet)
        .default_service(reject(|| ApiError::RouteNotFound));
    config
        .service(v1)
        .service(read_only("/openapi.json", openapi::serve))
        .service(read_only("/docs", explorer::page))
        .service(read_only("/docs/{file}", explorer::file))
        .service(read_only("/docs/", async || explorer::redirect("../docs")))
        .service(read_only("/", async || explorer::redirect("docs")))
        .default_service(unrouted("GET, HEAD, POST, OPTIONS"));
}

/// Routes of the management listener.
pub(crate) fn management(config: &mut ServiceConfig) {
    config
        .service(read_only("/live", health::live))
        .service(read_only("/ready", health::ready))
        .service(read_only("/metrics", metrics::serve))
        .default_service(unrouted("GET, HEAD, OPTIONS"));
}

/// A path without a route is a 404. `*` is the target of OPTIONS alone, and asks what the server allows.
fn unrouted(allowed: &'static str) -> Route {
    web::to(move |request: HttpRequest| async move {
        if request.path() == "*" {
            Ok(HttpResponse::NoContent()
                .insert_header((ALLOW, allowed))
                .finish())
        } else {
            Err(ApiError::RouteNotFound)
        }
    })
}

/// A resource with GET and HEAD.
fn read_only<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    F::Output: Responder + 'static,
    Args: FromRequest + 'static,
{
    web::resource(path)
        .route(web::get().to(Caught(handler.clone())))
        .route(web::head().to(Caught(handler)))
        .default_service(reject(|| ApiError::MethodNotAllowed("GET, HEAD")))
}

fn reject(error: fn() -> ApiError) -> Route {
    web::to(move || async move { Err::<HttpResponse, _>(error()) })
}
