use std::{
    io::{self, Read, Write},
    path::Path,
    str::FromStr,
    time::SystemTime,
};

use animal_store_app::ports::{PetFileError, PetSink, PetSource};
use thiserror::Error;

use crate::{
    csv_sink::CsvSink, csv_source::CsvSource, input::Input, ndjson_sink::NdjsonSink, ndjson_source::NdjsonSource,
};

/// Format of a file of pets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// A JSON object per line.
    Ndjson,
    /// A record per line, as in RFC 4180.
    Csv,
}

/// The text is not the name of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a format must be ndjson or csv")]
pub struct FileFormatError;

impl FileFormat {
    /// Returns the format that the extension of a file stands for: `.ndjson`, `.jsonl` or `.csv`.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// Begins a file of pets. The writer is buffered.
    ///
    /// # Errors
    /// If the beginning cannot be written.
    pub fn create(self, writer: Box<dyn Write + Send>, exported_at: SystemTime) -> io::Result<Box<dyn PetSink>> {
        Ok(match self {
            Self::Ndjson => Box::new(NdjsonSink::create(writer, exported_at)?),
            Self::Csv => Box::new(CsvSink::create(writer, exported_at)?),
        })
    }

    /// Reads the beginning of a file of pets. The reader is buffered.
    ///
    /// # Errors
    /// See [`PetFileError`].
    pub fn open(self, reader: Box<dyn Read + Send>) -> Result<Box<dyn PetSource>, PetFileError> {
        let input = Input::identify(reader).map_err(PetFileError::Unreadable)?;
        Ok(match self {
            Self::Ndjson => Box::new(NdjsonSource::open(input)?),
            Self::Csv => Box::new(CsvSource::open(input)?),
        })
    }
}

impl FromStr for FileFormat {
    type Err = FileFormatError;

    fn from_str(name: &str) -> Result<Self, FileFormatError> {
        match name {
            "ndjson" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            _ => Err(FileFormatError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_a_name_and_extensions() {
        for (name, format) in [("ndjson", FileFormat::Ndjson), ("csv", FileFormat::Csv)] {
            assert_eq!(name.parse(), Ok(format));
            assert_eq!(FileFormat::from_path(Path::new(&format!("pets.2026.{name}"))), Some(format));
        }
        assert_eq!("json".parse::<FileFormat>(), Err(FileFormatError));
        assert_eq!(FileFormat::from_path(Path::new("pets.jsonl")), Some(FileFormat::Ndjson));
        for other in ["-", "csv", "pets.txt", "pets.CSV"] {
            assert_eq!(FileFormat::from_path(Path::new(other)), None, "{other}");
        }
    }
}
