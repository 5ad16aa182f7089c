use animal_store_app::pet_repository_contract;

use crate::store::repository;

pet_repository_contract!(repository);
