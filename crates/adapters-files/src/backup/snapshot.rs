use std::{path::PathBuf, time::SystemTime};

use animal_store_app::{
    IdempotencyKey,
    ports::{BulkStorageError, IdempotencyRecord, PetFileError, StorageSnapshot, StoredPet},
};
use animal_store_domain::PetId;
use async_trait::async_trait;

use super::reader::{BackupReader, LineKind};

/// A backup that is read page by page. A page before the current position reads the file again from its beginning.
pub(super) struct BackupSnapshot {
    path: PathBuf,
    reader: BackupReader,
    /// Last pet that was read.
    last_pet: Option<PetId>,
    /// Last idempotency key that was read.
    last_key: Option<IdempotencyKey>,
}

impl BackupSnapshot {
    pub(super) fn open(path: PathBuf) -> Result<Self, BulkStorageError> {
        let reader = BackupReader::open(&path).map_err(unavailable)?;
        Ok(Self { path, reader, last_pet: None, last_key: None })
    }

    /// Moves to the next line of this kind. `false`: no more lines of this kind follow.
    fn advance_to(&mut self, kind: LineKind) -> Result<bool, PetFileError> {
        loop {
            let found = self.reader.advance()?;
            if found == LineKind::Pet && kind > found {
                self.last_pet = Some(self.reader.pet()?.pet.id());
            } else {
                if found != kind {
                    self.reader.keep();
                }
                return Ok(found == kind);
            }
        }
    }

    fn read_pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, PetFileError> {
        let mut pets = Vec::new();
        while pets.len() < limit && self.advance_to(LineKind::Pet)? {
            let pet = self.reader.pet()?;
            self.last_pet = Some(pet.pet.id());
            if self.last_pet > after {
                pets.push(pet);
            }
        }
        Ok(pets)
    }

    fn read_records(
        &mut self,
        after: Option<&IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, PetFileError> {
        let now = SystemTime::now();
        let mut records = Vec::new();
        while records.len() < limit && self.advance_to(LineKind::IdempotencyRecord)? {
            let record = self.reader.idempotency_record()?;
            self.last_key = Some(record.key.clone());
            if Some(&record.key) > after && record.expires_at > now {
                records.push(record);
            }
        }
        Ok(records)
    }
}

fn unavailable(error: PetFileError) -> BulkStorageError {
    BulkStorageError::Unavailable(error.into())
}

#[async_trait]
impl StorageSnapshot for BackupSnapshot {
    async fn pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError> {
        if after < self.last_pet {
            *self = Self::open(self.path.clone())?;
        }
        self.read_pets(after, limit).map_err(unavailable)
    }

    async fn idempotency_records(
        &mut self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, BulkStorageError> {
        if after < self.last_key {
            *self = Self::open(self.path.clone())?;
        }
        self.read_records(after.as_ref(), limit).map_err(unavailable)
    }
}
