use std::io::Read;

use animal_store_app::{
    PetsHasher,
    ports::{ImportSource, PetFileError, PetLine, PetSource},
};

use crate::{
    end::{self, End},
    header::{Header, PETS},
    input::Input,
    line_digest::LineDigest,
    lines::Lines,
    pet_object,
    pet_record::PetRecord,
};

/// A file of pets as NDJSON.
pub(crate) struct NdjsonSource {
    id: ImportSource,
    lines: Lines<Box<dyn Read + Send>>,
    digest: LineDigest,
    /// The pets of an export. `None`: the file was made elsewhere.
    exported: Option<PetsHasher>,
}

impl NdjsonSource {
    pub(crate) fn open(input: Input) -> Result<Self, PetFileError> {
        let mut lines = Lines::new(input.reader);
        let has_line = lines.advance().map_err(PetFileError::Unreadable)?;
        let header = Header::from_ndjson(lines.bytes());
        if let Some(header) = &header {
            header.check(PETS)?;
        } else if has_line {
            lines.keep();
        }
        let exported = header.map(|_| PetsHasher::default());
        Ok(Self { id: input.id, lines, digest: LineDigest::default(), exported })
    }

    fn parse(&self) -> Result<PetRecord, &'static str> {
        if self.lines.is_too_long() {
            return Err("the line must have at most 1 MiB");
        }
        pet_object::parse(self.lines.bytes())
    }
}

impl PetSource for NdjsonSource {
    fn id(&self) -> ImportSource {
        self.id
    }

    fn next_line(&mut self, ids: bool) -> Result<Option<PetLine>, PetFileError> {
        loop {
            if !self.lines.advance().map_err(PetFileError::Unreadable)? {
                return if self.exported.is_some() { Err(end::missing()) } else { Ok(None) };
            }
            if self.lines.bytes().trim_ascii().is_empty() {
                continue;
            }
            if let Some(exported) = &self.exported {
                if let Some(end) = End::from_ndjson(self.lines.bytes()) {
                    end.check(exported)?;
                    let is_last = !self.lines.advance().map_err(PetFileError::Unreadable)?;
                    return if is_last { Ok(None) } else { Err(end::followed()) };
                }
                if !self.lines.is_terminated() && !self.lines.is_too_long() {
                    return Err(end::missing());
                }
            }
            let record = self.parse().map_err(str::to_owned);
            let pet = record.and_then(|record| record.into_bulk_pet(ids, self.exported.as_mut()));
            let digest = self.digest.add([self.lines.bytes().trim_ascii_end()]);
            return Ok(Some(PetLine { number: self.lines.number(), digest, pet }));
        }
    }
}
