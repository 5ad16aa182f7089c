//! Where pets and API keys are.

use animal_store_settings::Values;

use super::{api_keys::ApiKeysConfig, storage::StorageConfig};

/// Where pets and API keys are.
#[derive(Debug)]
pub struct Stores {
    /// The storage of pets.
    pub pets: StorageConfig,
    pub(crate) api_keys: ApiKeysConfig,
}

impl Stores {
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let pets = StorageConfig::read(values);
        let api_keys = ApiKeysConfig::read(values);
        Some(Self {
            pets: pets?,
            api_keys: api_keys?,
        })
    }

    /// Whether the API keys are in the store of the pets.
    pub(crate) fn are_one(&self) -> bool {
        match self.api_keys {
            ApiKeysConfig::Sqlite(_) => matches!(self.pets, StorageConfig::Sqlite(_)),
            ApiKeysConfig::Postgres(_) => matches!(self.pets, StorageConfig::Postgres(_)),
            ApiKeysConfig::Memory(_) | ApiKeysConfig::Redis(_) => false,
        }
    }
}
