//! The response to each error of a use case.

use animal_store_app::{
    ApiTokenError, AuthenticateError, InsufficientScope,
    ports::{AddPetError, Cause, StoreFailure},
};

use super::{ApiError, ExceededLimit};

impl From<StoreFailure> for ApiError {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Unavailable(_) | StoreFailure::Timeout => {
                Self::Unavailable(failure.into())
            }
            StoreFailure::Overloaded => Self::Overloaded(ExceededLimit::StorageQueue),
            StoreFailure::Corrupt(_) => Self::Internal(failure.into()),
            StoreFailure::OutcomeUnknown(_) => Self::OutcomeUnknown(failure.into()),
        }
    }
}

impl From<ApiTokenError> for ApiError {
    fn from(error: ApiTokenError) -> Self {
        match error {
            ApiTokenError::Malformed => Self::MalformedApiKey,
            ApiTokenError::Checksum => Self::UnknownApiKey,
        }
    }
}

impl From<InsufficientScope> for ApiError {
    fn from(InsufficientScope(scope): InsufficientScope) -> Self {
        Self::InsufficientScope(scope)
    }
}

impl From<AddPetError> for ApiError {
    fn from(error: AddPetError) -> Self {
        match error {
            AddPetError::Store(error) => error.into(),
            AddPetError::IdempotencyConflict => Self::IdempotencyConflict,
            AddPetError::IdempotencyMismatch => Self::IdempotencyMismatch,
        }
    }
}

impl From<AuthenticateError> for ApiError {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::UnknownKey => Self::UnknownApiKey,
            AuthenticateError::Directory(StoreFailure::Overloaded) => {
                Self::Overloaded(ExceededLimit::KeyLookups)
            }
            AuthenticateError::Directory(StoreFailure::Corrupt(_)) => {
                Self::Internal(Cause::of(&error))
            }
            AuthenticateError::Directory(_) => Self::Unavailable(Cause::of(&error)),
        }
    }
}
