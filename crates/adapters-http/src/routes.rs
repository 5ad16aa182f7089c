//! Which path and method calls which handler.

use actix_web::{
    FromRequest, Handler, HttpResponse, Resource, Responder, Route,
    http::header::CACHE_CONTROL,
    middleware::{DefaultHeaders, from_fn},
    web::{self, ServiceConfig},
};

use crate::{
    auth::authenticate,
    deprecation,
    error::ApiError,
    explorer, health, openapi,
    pets::{create_pet, get_pet, list_pets},
};

/// The interface. Whatever is asked for under `/v1` needs an API key, paths that lead nowhere included.
pub(crate) fn api(config: &mut ServiceConfig) {
    let pets = web::resource("/pets")
        .route(web::get().to(list_pets))
        .route(web::head().to(list_pets))
        .route(web::post().to(create_pet))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD, POST")));
    let pet = web::resource("/pets/{petId}")
        .route(web::get().to(get_pet).wrap(deprecation::headers()))
        .route(web::head().to(get_pet).wrap(deprecation::headers()))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD")));
    let v1 = web::scope("/v1")
        .wrap(from_fn(authenticate))
        .wrap(DefaultHeaders::new().add((CACHE_CONTROL, "no-store")))
        .service(pets)
        .service(pet)
        .default_service(refuse(|| ApiError::RouteNotFound));
    config
        .service(v1)
        .service(readable("/openapi.json", openapi::serve))
        .service(readable("/docs", explorer::page))
        .service(readable("/docs/{file}", explorer::file))
        .service(readable("/", explorer::redirect))
        .default_service(refuse(|| ApiError::RouteNotFound));
}

/// What operators ask.
pub(crate) fn management(config: &mut ServiceConfig) {
    config
        .service(readable("/live", health::live))
        .service(readable("/ready", health::ready))
        .default_service(refuse(|| ApiError::RouteNotFound));
}

/// What can only be read.
fn readable<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    F::Output: Responder + 'static,
    Args: FromRequest + 'static,
{
    web::resource(path)
        .route(web::get().to(handler.clone()))
        .route(web::head().to(handler))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD")))
}

fn refuse(error: fn() -> ApiError) -> Route {
    web::to(move || async move { Err::<HttpResponse, _>(error()) })
}
