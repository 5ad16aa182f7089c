//! The handler of each path and method.

use actix_web::{
    FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route, guard,
    http::header::{ALLOW, CACHE_CONTROL},
    middleware::{DefaultHeaders, from_fn},
    web::{self, ServiceConfig},
};

use crate::{
    error::ApiError,
    explorer, health, metrics,
    middleware::{Caught, authenticate::authenticate},
    openapi,
    pets::{
        METHODS, PET_METHODS, PETS_METHODS, create_pet,
        get::{announce_deprecation, removed},
        get_pet, list_pets,
    },
};

/// Methods of what can only be read.
const READ_METHODS: &str = "GET, HEAD";

/// Routes of the API listener. Every path under `/v1` needs an API key, unknown paths included.
pub(crate) fn api(config: &mut ServiceConfig, serves_get_pet: bool) {
    let pets = web::resource("/pets")
        .route(read(list_pets))
        .route(web::post().to(Caught(create_pet)))
        .default_service(reject(|| ApiError::MethodNotAllowed(PETS_METHODS)));
    let get = if serves_get_pet {
        read(get_pet)
    } else {
        read(removed)
    };
    let pet = web::resource("/pets/{petId}")
        .route(get.wrap(from_fn(announce_deprecation)))
        .default_service(reject(|| ApiError::MethodNotAllowed(PET_METHODS)));
    let v1 = web::scope("/v1")
        .wrap(from_fn(authenticate))
        .wrap(DefaultHeaders::new().add((CACHE_CONTROL, "no-store")))
        .service(pets)
        .service(pet)
        .default_service(reject(|| ApiError::RouteNotFound));
    config
        .service(v1)
        .service(read_only("/openapi.json", read(openapi::serve)))
        .service(read_only("/docs", read(explorer::page)))
        .service(read_only("/docs/{file}", read(explorer::file)))
        .service(read_only("/docs/", read(explorer::from_folder)))
        .service(read_only("/", read(explorer::from_root)))
        .default_service(unrouted(METHODS));
}

/// Routes of the management listener.
pub(crate) fn management(config: &mut ServiceConfig) {
    config
        .service(read_only("/live", read(health::live)))
        .service(read_only("/ready", read(health::ready)))
        .service(read_only("/metrics", read(metrics::serve)))
        .default_service(unrouted(READ_METHODS));
}

/// A path without a route is a 404. `*` is the target of OPTIONS alone, and asks what the server allows.
fn unrouted(methods: &'static str) -> Route {
    web::to(move |request: HttpRequest| async move {
        if request.path() == "*" {
            Ok(HttpResponse::NoContent()
                .insert_header((ALLOW, format!("{methods}, OPTIONS")))
                .finish())
        } else {
            Err(ApiError::RouteNotFound)
        }
    })
}

/// The handler of GET and HEAD.
fn read<F, Args>(handler: F) -> Route
where
    F: Handler<Args, Output: Responder + 'static>,
    Args: FromRequest + 'static,
{
    let methods = guard::Any(guard::Get()).or(guard::Head());
    web::route().guard(methods).to(Caught(handler))
}

/// A resource with GET and HEAD alone.
fn read_only(path: &str, handler: Route) -> Resource {
    web::resource(path)
        .route(handler)
        .default_service(reject(|| ApiError::MethodNotAllowed(READ_METHODS)))
}

fn reject(error: fn() -> ApiError) -> Route {
    web::to(move || async move { Err::<HttpResponse, _>(error()) })
}
