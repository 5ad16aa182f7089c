use animal_store_app::{idempotency_contract, pet_repository_contract};

use crate::store::{repository, with_retention};

pet_repository_contract!(repository);
idempotency_contract!(with_retention);
