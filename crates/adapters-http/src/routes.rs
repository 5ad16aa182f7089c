//! Which path and method calls which handler.

use actix_web::{
    HttpResponse, Route,
    http::header::CACHE_CONTROL,
    middleware::{DefaultHeaders, from_fn},
    web::{self, ServiceConfig},
};

use crate::{
    auth::authenticate,
    deprecation,
    error::ApiError,
    health, openapi,
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
    let openapi = web::resource("/openapi.json")
        .route(web::get().to(openapi::serve))
        .route(web::head().to(openapi::serve))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD")));
    config.service(v1).service(openapi).default_service(refuse(|| ApiError::RouteNotFound));
}

/// What operators ask.
pub(crate) fn management(config: &mut ServiceConfig) {
    let live = web::resource("/live")
        .route(web::get().to(health::live))
        .route(web::head().to(health::live))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD")));
    let ready = web::resource("/ready")
        .route(web::get().to(health::ready))
        .route(web::head().to(health::ready))
        .default_service(refuse(|| ApiError::MethodNotAllowed("GET, HEAD")));
    config.service(live).service(ready).default_service(refuse(|| ApiError::RouteNotFound));
}

fn refuse(error: fn() -> ApiError) -> Route {
    web::to(move || async move { Err::<HttpResponse, _>(error()) })
}
