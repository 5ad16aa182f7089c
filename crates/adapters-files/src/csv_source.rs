use std::io::{self, Read};

use animal_store_app::{
    PetsHasher,
    ports::{ImportSource, PetFileError, PetLine, PetSource},
};
use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::{
    csv_sink::COLUMNS,
    end::{self, End},
    header::{Header, PETS},
    input::Input,
    line_digest::LineDigest,
    lines::MAX_LINE_BYTES,
    pet_record::{
        Member, PetRecord, REQUIRED, parse_category_id, parse_created_at, parse_id, parse_name, parse_status,
    },
};

/// A file of pets as CSV.
pub(crate) struct CsvSource {
    id: ImportSource,
    reader: Reader<BoundedReader>,
    record: ByteRecord,
    /// Whether lines end with CR LF. The reader counts an LF after a CR with the next record.
    has_crlf: bool,
    /// Number of columns of the file.
    width: usize,
    /// Position of each of [`COLUMNS`] in the file.
    columns: [Option<usize>; COLUMNS.len()],
    digest: LineDigest,
    /// The pets of an export. `None`: the file was made elsewhere.
    exported: Option<PetsHasher>,
}

/// Limits the length of a record: without it, a missing quote would read the whole file into memory.
struct BoundedReader {
    reader: Box<dyn Read + Send>,
    /// Number of bytes that the current record may still have.
    left: u64,
    last_byte: u8,
    is_at_end: bool,
}

impl Read for BoundedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.is_at_end = read == 0;
        self.last_byte = buffer[..read].last().copied().unwrap_or(self.last_byte);
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let problem = "a line has more than 1 MiB: a quotation mark may be missing";
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })?;
        Ok(read)
    }
}

impl CsvSource {
    pub(crate) fn open(input: Input) -> Result<Self, PetFileError> {
        let reader = BoundedReader { reader: input.reader, left: MAX_LINE_BYTES, last_byte: b'\n', is_at_end: false };
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
        let mut source = Self {
            id: input.id,
            reader,
            record: ByteRecord::new(),
            has_crlf: false,
            width: 0,
            columns: [None; COLUMNS.len()],
            digest: LineDigest::default(),
            exported: None,
        };
        source.advance()?;
        source.has_crlf = source.reader.position().line() == 1;
        if let Some(header) = source.record.get(0).and_then(Header::from_csv) {
            header.check(PETS)?;
            source.exported = Some(PetsHasher::default());
            source.advance()?;
        }
        source.width = source.record.len();
        for (column, name) in source.columns.iter_mut().zip(COLUMNS) {
            let mut positions = source.record.iter().enumerate().filter(|(_, field)| *field == name.as_bytes());
            *column = positions.next().map(|(position, _)| position);
            let is_required = ["name", "categoryId"].contains(&name);
            if positions.next().is_some() || column.is_none() && is_required {
                return Err(PetFileError::Format(format!("the file must have one column {name}")));
            }
        }
        Ok(source)
    }

    /// Reads the next record. `false`: the file has ended.
    fn advance(&mut self) -> Result<bool, PetFileError> {
        self.reader.get_mut().left = MAX_LINE_BYTES;
        self.reader.read_byte_record(&mut self.record).map_err(|error| PetFileError::Unreadable(error.into()))
    }

    /// Whether the file ended within the record.
    fn is_cut(&self) -> bool {
        let BoundedReader { is_at_end, last_byte, .. } = self.reader.get_ref();
        *is_at_end && *last_byte != b'\n'
    }

    /// Number of the line in which the record begins, from 1.
    fn line_number(&self) -> u64 {
        let breaks = self.record.as_slice().split(|byte| *byte == b'\n').count() as u64 - 1;
        let end = u64::from(!self.has_crlf && !self.is_cut());
        self.reader.position().line().saturating_sub(breaks + end)
    }

    fn parse(&self) -> Result<PetRecord, String> {
        if self.record.len() != self.width {
            return Err(format!("the line must have {} columns, not {}", self.width, self.record.len()));
        }
        let [id, name, category_id, status, created_at] = self.columns.map(|column| self.record.get(column?));
        let text = |field| str::from_utf8(field).map_err(|_| "the line must be UTF-8");
        let texts = [id, name, category_id, status, created_at].map(|field| field.map(text).transpose());
        let [id, name, category_id, status, created_at] = texts;
        Ok(PetRecord {
            id: optional(id?, Err(REQUIRED), |text| parse_id(text.parse().ok())),
            name: parse_name(name?),
            category_id: parse_category_id(category_id?.and_then(|text| text.parse().ok())),
            status: optional(status?, Ok(None), |text| parse_status(Some(text))),
            created_at: optional(created_at?, Ok(None), |text| parse_created_at(Some(text))),
        })
    }
}

/// Parses a field that may be empty or absent.
fn optional<T>(field: Option<&str>, absent: Member<T>, parse: impl FnOnce(&str) -> Member<T>) -> Member<T> {
    field.filter(|text| !text.is_empty()).map_or(absent, parse)
}

impl PetSource for CsvSource {
    fn id(&self) -> ImportSource {
        self.id
    }

    fn next_line(&mut self, ids: bool) -> Result<Option<PetLine>, PetFileError> {
        if !self.advance()? {
            return if self.exported.is_some() { Err(end::missing()) } else { Ok(None) };
        }
        if let Some(exported) = &self.exported {
            if let Some(end) = self.record.get(0).and_then(End::from_csv) {
                end.check(exported)?;
                return if self.advance()? { Err(end::followed()) } else { Ok(None) };
            }
            if self.is_cut() {
                return Err(end::missing());
            }
        }
        let pet = self.parse().and_then(|record| record.into_bulk_pet(ids, self.exported.as_mut()));
        let digest = self.digest.add(&self.record);
        Ok(Some(PetLine { number: self.line_number(), digest, pet }))
    }
}
