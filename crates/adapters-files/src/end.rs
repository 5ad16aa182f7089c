//! The last line of an export.

use animal_store_app::{PetsHasher, ports::PetFileError};
use serde::Deserialize;

/// First word of the last line of a CSV file.
const CSV_MARK: &str = "#end";

/// Number and digest of the pets of an export.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct End {
    pets: u64,
    sha256: String,
}

/// Returns the last line of a CSV file, without its end.
pub(crate) fn csv_line(pets: u64, digest: impl std::fmt::Display) -> String {
    format!("{CSV_MARK} pets={pets} sha256={digest}")
}

/// The file ended before its last line.
pub(crate) fn missing() -> PetFileError {
    PetFileError::Incomplete("its last line is missing".to_owned())
}

/// More lines follow the last one.
pub(crate) fn followed() -> PetFileError {
    PetFileError::Incomplete("lines follow its last line".to_owned())
}

impl End {
    /// Returns the end in a line of an NDJSON file. `None`: it is another line.
    pub(crate) fn from_ndjson(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct EndLine {
            end: End,
        }
        let is_end = line.starts_with(br#"{"end":"#);
        is_end.then(|| serde_json::from_slice::<EndLine>(line).ok()).flatten().map(|line| line.end)
    }

    /// Returns the end in a line of a CSV file. `None`: it is another line.
    pub(crate) fn from_csv(line: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        words.next().filter(|mark| *mark == CSV_MARK)?;
        let pets = words.next()?.strip_prefix("pets=")?.parse().ok()?;
        Some(Self { pets, sha256: words.next()?.strip_prefix("sha256=")?.to_owned() })
    }

    /// Compares the end with the pets before it.
    pub(crate) fn check(&self, pets: &PetsHasher) -> Result<(), PetFileError> {
        let problem = if self.pets != pets.pets() {
            format!("it has {} valid pets instead of {}", pets.pets(), self.pets)
        } else if self.sha256 != pets.digest().to_string() {
            "its digest does not match its pets".to_owned()
        } else {
            return Ok(());
        };
        Err(PetFileError::Incomplete(problem))
    }
}
