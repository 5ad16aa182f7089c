//! What goes wrong in a use case, as an answer.

use animal_store_app::{
    AuthenticateError, CreatePetError, GetPetError, ListPetsError,
    ports::{DirectoryError, NotReady, StorageError},
};

use super::ApiError;

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unavailable(_) | StorageError::Deadline => Self::Unavailable(error.into()),
            StorageError::Overloaded => Self::Overloaded,
            StorageError::Corrupt(_) => Self::Internal(error.into()),
        }
    }
}

impl From<ListPetsError> for ApiError {
    fn from(error: ListPetsError) -> Self {
        match error {
            ListPetsError::Storage(error) => error.into(),
        }
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

impl From<CreatePetError> for ApiError {
    fn from(error: CreatePetError) -> Self {
        match error {
            CreatePetError::NotStored(error) => error.into(),
            CreatePetError::IdempotencyConflict => Self::IdempotencyConflict,
            CreatePetError::IdempotencyMismatch => Self::IdempotencyMismatch,
            CreatePetError::OutcomeUnknown(_) => Self::OutcomeUnknown(error.into()),
        }
    }
}

impl From<AuthenticateError> for ApiError {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::UnknownKey => Self::UnknownApiKey,
            AuthenticateError::Directory(DirectoryError::Overloaded) => Self::Overloaded,
            AuthenticateError::Directory(DirectoryError::Unavailable(_) | DirectoryError::Deadline) => {
                Self::Unavailable(error.into())
            }
            AuthenticateError::Directory(DirectoryError::Corrupt(_)) => Self::Internal(error.into()),
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
            StorageError::Deadline,
            StorageError::Corrupt("status 7".into()),
        ]
    }

    #[test]
    fn whatever_fails_storage_is_answered_alike_by_every_operation() {
        let codes = ["unavailable", "overloaded", "unavailable", "internal_error"];

        assert_eq!(storage_errors().map(|error| ApiError::from(ListPetsError::Storage(error)).code()), codes);
        assert_eq!(storage_errors().map(|error| ApiError::from(GetPetError::Storage(error)).code()), codes);
        assert_eq!(storage_errors().map(|error| ApiError::from(CreatePetError::NotStored(error)).code()), codes);
    }

    #[test]
    fn an_animal_that_may_have_been_added_is_told_apart() {
        assert_eq!(ApiError::from(CreatePetError::OutcomeUnknown("cut".into())).code(), "outcome_unknown");
    }

    #[test]
    fn a_key_that_is_taken_is_told_from_one_that_is_busy() {
        assert_eq!(ApiError::from(CreatePetError::IdempotencyConflict).code(), "idempotency_conflict");
        assert_eq!(ApiError::from(CreatePetError::IdempotencyMismatch).code(), "idempotency_mismatch");
    }

    #[test]
    fn an_unknown_animal_is_not_found() {
        assert_eq!(ApiError::from(GetPetError::NotFound).code(), "pet_not_found");
    }

    #[test]
    fn a_directory_that_cannot_look_is_never_a_401() {
        for (error, code) in [
            (AuthenticateError::UnknownKey, "invalid_api_key"),
            (DirectoryError::Unavailable("away".into()).into(), "unavailable"),
            (DirectoryError::Deadline.into(), "unavailable"),
            (DirectoryError::Overloaded.into(), "overloaded"),
            (DirectoryError::Corrupt("no id".into()).into(), "internal_error"),
        ] {
            assert_eq!(ApiError::from(error).code(), code);
        }
    }

    #[test]
    fn what_is_not_ready_is_unavailable() {
        assert_eq!(ApiError::from(NotReady("away".into())).code(), "unavailable");
    }
}
