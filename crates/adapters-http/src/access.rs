//! The scope of the API key, as the first parameter of a handler: a 403 precedes every other error of the request.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload};
use animal_store_app::{ApiKey, ReadAccess, WriteAccess};

use crate::{error::ApiError, request_record::RequestRecord};

/// The API key has the scope `read`.
pub(crate) struct Read(pub(crate) ReadAccess);

/// The API key has the scope `write`.
pub(crate) struct Write(pub(crate) WriteAccess);

impl FromRequest for Read {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let access = ReadAccess::new(&api_key(request));
        ready(access.map(Self).map_err(ApiError::from))
    }
}

impl FromRequest for Write {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let access = WriteAccess::new(api_key(request));
        ready(access.map(Self).map_err(ApiError::from))
    }
}

/// Returns the API key of a request under `/v1`.
pub(crate) fn api_key(request: &impl HttpMessage) -> Arc<ApiKey> {
    let key = RequestRecord::of(request).api_key.clone();
    key.expect("every route under `/v1` is behind `authenticate`")
}
