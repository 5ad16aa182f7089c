use std::{fs::File, path::Path};

use animal_store_app::{
    BackupSummary,
    ports::{ApiKeyRecord, IdempotencyRecord, PetFileError, StoredPet},
};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{api_key_line::ApiKeyLine, end_line::EndLine, idempotency_line::IdempotencyLine};
use crate::{
    end,
    header::{BACKUP, Header},
    lines::Lines,
    pet_object,
};

/// The lines of a backup from the first one.
#[derive(Debug)]
pub(super) struct BackupReader {
    lines: Lines<File>,
}

/// Content of a line. A backup has its lines in the order of these variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineKind {
    Pet,
    IdempotencyRecord,
    ApiKey,
    End,
}

impl BackupReader {
    pub(super) fn open(path: &Path) -> Result<Self, PetFileError> {
        let mut lines = Lines::new(File::open(path).map_err(PetFileError::Unreadable)?);
        lines.advance().map_err(PetFileError::Unreadable)?;
        let no_backup = || PetFileError::Format("the file is not a backup of the animal store".to_owned());
        Header::from_ndjson(lines.bytes()).ok_or_else(no_backup)?.check(BACKUP)?;
        Ok(Self { lines })
    }

    /// Moves to the next line and returns what it contains.
    pub(super) fn advance(&mut self) -> Result<LineKind, PetFileError> {
        let has_line = self.lines.advance().map_err(PetFileError::Unreadable)?;
        if !has_line || !self.lines.is_terminated() {
            return Err(end::missing());
        }
        let kinds = [
            (&br#"{"id":"#[..], LineKind::Pet),
            (br#"{"idempotencyKey":"#, LineKind::IdempotencyRecord),
            (br#"{"apiKey":"#, LineKind::ApiKey),
            (br#"{"end":"#, LineKind::End),
        ];
        let kind = kinds.iter().find(|(beginning, _)| self.lines.bytes().starts_with(beginning));
        kind.map(|(_, kind)| *kind).ok_or_else(|| self.invalid())
    }

    /// Stays at this line for the next call of `advance`.
    pub(super) const fn keep(&mut self) {
        self.lines.keep();
    }

    pub(super) fn pet(&self) -> Result<StoredPet, PetFileError> {
        let record = pet_object::parse(self.lines.bytes()).ok();
        record.and_then(|record| record.stored_pet()).ok_or_else(|| self.invalid())
    }

    pub(super) fn idempotency_record(&self) -> Result<IdempotencyRecord, PetFileError> {
        self.json::<IdempotencyLine>()?.into_record().ok_or_else(|| self.invalid())
    }

    pub(super) fn api_key(&self) -> Result<ApiKeyRecord, PetFileError> {
        self.json::<ApiKeyLine>()?.into_record().ok_or_else(|| self.invalid())
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, PetFileError> {
        serde_json::from_slice(self.lines.bytes()).map_err(|_| self.invalid())
    }

    fn invalid(&self) -> PetFileError {
        PetFileError::Incomplete(format!("line {} is not valid", self.lines.number()))
    }

    /// Reads all lines, and checks their values, their order and their digest.
    pub(super) fn check(mut self) -> Result<BackupSummary, PetFileError> {
        let mut sha256 = Sha256::new_with_prefix(self.lines.bytes());
        let mut summary = BackupSummary::default();
        let mut last_kind = LineKind::Pet;
        let (mut last_pet, mut last_key) = (None, None);
        loop {
            let kind = self.advance()?;
            let is_in_order = kind >= last_kind
                && match kind {
                    LineKind::Pet => {
                        summary.pets += 1;
                        let id = Some(self.pet()?.pet.id());
                        last_pet.replace(id) < Some(id)
                    }
                    LineKind::IdempotencyRecord => {
                        summary.idempotency_records += 1;
                        let key = self.idempotency_record()?.key;
                        last_key.replace(key.clone()) < Some(key)
                    }
                    LineKind::ApiKey => {
                        summary.api_keys += 1;
                        self.api_key().map(|_| true)?
                    }
                    LineKind::End => true,
                };
            if !is_in_order {
                return Err(self.invalid());
            }
            if kind == LineKind::End {
                break;
            }
            last_kind = kind;
            sha256.update(self.lines.bytes());
        }
        let expected = EndLine::new(summary, hex::encode(sha256.finalize()));
        if !self.json::<EndLine>()?.matches(&expected) {
            return Err(PetFileError::Incomplete("its digest does not match its lines".to_owned()));
        }
        if self.lines.advance().map_err(PetFileError::Unreadable)? { Err(end::followed()) } else { Ok(summary) }
    }
}
