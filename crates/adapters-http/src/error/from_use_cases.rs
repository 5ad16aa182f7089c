//! What goes wrong in a use case, as an answer.

use animal_store_app::{
    ApiTokenError, AuthenticateError, GetPetError, InsufficientScope,
    ports::{AddPetError, ApiKeyDirectoryError, NotReady, StorageError},
};

use super::ApiError;

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unavailable(_) | StorageError::Timeout => Self::Unavailable(error.into()),
            StorageError::Overloaded => Self::Overloaded,
            StorageError::Corrupt(_) => Self::Internal(error.into()),
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

impl From<GetPetError> for ApiError {
    fn from(error: GetPetError) -> Self {
        match error {
            GetPetError::NotFound => Self::PetNotFound,
            GetPetError::Storage(error) => error.into(),
        }
    }
}

impl From<AddPetError> for ApiError {
    fn from(error: AddPetError) -> Self {
        match error {
            AddPetError::NotStored(error) => error.into(),
            AddPetError::IdempotencyConflict => Self::IdempotencyConflict,
            AddPetError::IdempotencyMismatch => Self::IdempotencyMismatch,
            AddPetError::OutcomeUnknown(_) => Self::OutcomeUnknown(error.into()),
        }
    }
}

impl From<AuthenticateError> for ApiError {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::UnknownKey => Self::UnknownApiKey,
            AuthenticateError::Directory(ApiKeyDirectoryError::Overloaded) => Self::Overloaded,
            AuthenticateError::Directory(ApiKeyDirectoryError::Unavailable(_) | ApiKeyDirectoryError::Timeout) => {
                Self::Unavailable(error.into())
            }
            AuthenticateError::Directory(ApiKeyDirectoryError::Corrupt(_)) => Self::Internal(error.into()),
        }
    }
}

impl From<NotReady> for ApiError {
    fn from(error: NotReady) -> Self {
        Self::Unavailable(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage_errors() -> [StorageError; 4] {
        [
            StorageError::Unavailable("away".into()),
            StorageError::Overloaded,
            StorageError::Timeout,
            StorageError::Corrupt("status 7".into()),
        ]
    }

    #[test]
    fn whatever_fails_storage_is_answered_alike_by_every_operation() {
        let codes = ["unavailable", "overloaded", "unavailable", "internal_error"];

        assert_eq!(storage_errors().map(|error| ApiError::from(error).code()), codes);
        assert_eq!(storage_errors().map(|error| ApiError::from(GetPetError::Storage(error)).code()), codes);
        assert_eq!(storage_errors().map(|error| ApiError::from(AddPetError::NotStored(error)).code()), codes);
    }

    #[test]
    fn an_animal_that_may_have_been_added_is_told_apart() {
        assert_eq!(ApiError::from(AddPetError::OutcomeUnknown("cut".into())).code(), "outcome_unknown");
    }

    #[test]
    fn a_key_that_is_taken_is_told_from_one_that_is_busy() {
        assert_eq!(ApiError::from(AddPetError::IdempotencyConflict).code(), "idempotency_conflict");
        assert_eq!(ApiError::from(AddPetError::IdempotencyMismatch).code(), "idempotency_mismatch");
    }

    #[test]
    fn an_unknown_animal_is_not_found() {
        assert_eq!(ApiError::from(GetPetError::NotFound).code(), "pet_not_found");
    }

    #[test]
    fn a_directory_that_cannot_look_is_never_a_401() {
        for (error, code) in [
            (AuthenticateError::UnknownKey, "invalid_api_key"),
            (ApiKeyDirectoryError::Unavailable("away".into()).into(), "unavailable"),
            (ApiKeyDirectoryError::Timeout.into(), "unavailable"),
            (ApiKeyDirectoryError::Overloaded.into(), "overloaded"),
            (ApiKeyDirectoryError::Corrupt("no id".into()).into(), "internal_error"),
        ] {
            assert_eq!(ApiError::from(error).code(), code);
        }
    }

    #[test]
    fn what_is_not_ready_is_unavailable() {
        assert_eq!(ApiError::from(NotReady("away".into())).code(), "unavailable");
    }
}
