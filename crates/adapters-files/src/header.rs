//! The first line of a file that the animal store wrote.

use std::time::SystemTime;

use animal_store_app::ports::PetFileError;
use serde::Deserialize;
use serde_json::json;

use crate::time;

pub(crate) const PETS: &str = "pets";
pub(crate) const BACKUP: &str = "backup";

/// Version of all formats. A release reads this version and all lower ones.
const VERSION: u64 = 1;

/// First word of a CSV file.
const CSV_MARK: &str = "#animal-store";

/// Kind and version of a file.
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    kind: String,
    version: u64,
}

/// Returns the first line of an NDJSON file, without its end.
pub(crate) fn ndjson_line(kind: &str, exported_at: SystemTime) -> String {
    let exported_at = time::format(exported_at).to_string();
    json!({ "animalStore": { "kind": kind, "version": VERSION, "exportedAt": exported_at } }).to_string()
}

/// Returns the first line of a CSV file, without its end.
pub(crate) fn csv_line(exported_at: SystemTime) -> String {
    format!("{CSV_MARK} {PETS} version={VERSION} exportedAt={}", time::format(exported_at))
}

impl Header {
    /// Returns the header in the first line of an NDJSON file. `None`: the file was made elsewhere.
    pub(crate) fn from_ndjson(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct HeaderLine {
            #[serde(rename = "animalStore")]
            animal_store: Header,
        }
        serde_json::from_slice::<HeaderLine>(line).ok().map(|line| line.animal_store)
    }

    /// Returns the header in the first line of a CSV file. `None`: the file was made elsewhere.
    pub(crate) fn from_csv(line: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        let kind = words.next().filter(|mark| *mark == CSV_MARK).and(words.next())?;
        let version = words.find_map(|word| word.strip_prefix("version="))?;
        Some(Self { kind: kind.to_owned(), version: version.parse().ok()? })
    }

    /// Refuses files of another kind and files of newer releases.
    pub(crate) fn check(&self, kind: &str) -> Result<(), PetFileError> {
        if self.kind != kind {
            let problem = match &*self.kind {
                PETS => "the file is an export of pets, not a backup: use pets import",
                BACKUP => "the file is a backup, not an export of pets: use restore",
                _ => "the file is of an unknown kind",
            };
            return Err(PetFileError::Format(problem.to_owned()));
        }
        if self.version > VERSION { Err(PetFileError::NewerVersion(self.version)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_kind_a_version_and_the_time() {
        let line = ndjson_line(PETS, SystemTime::UNIX_EPOCH);
        let members = r#"{"exportedAt":"1970-01-01T00:00:00.000000Z","kind":"pets","version":1}"#;
        assert_eq!(line, format!(r#"{{"animalStore":{members}}}"#));
        assert!(Header::from_ndjson(line.as_bytes()).unwrap().check(PETS).is_ok());

        let line = csv_line(SystemTime::UNIX_EPOCH);
        assert_eq!(line, "#animal-store pets version=1 exportedAt=1970-01-01T00:00:00.000000Z");
        assert!(Header::from_csv(line.as_bytes()).unwrap().check(PETS).is_ok());
    }

    #[test]
    fn a_line_of_another_program_is_no_header() {
        for line in [r#"{"name":"Rex","categoryId":1}"#, "name,categoryId", "", "{", "#animal-store", "#other pets"] {
            assert!(Header::from_ndjson(line.as_bytes()).is_none(), "{line}");
            assert!(Header::from_csv(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn another_kind_and_a_newer_version_are_refused() {
        let check = |kind: &str, version, expected| Header { kind: kind.to_owned(), version }.check(expected);
        assert!(matches!(check(BACKUP, 1, PETS), Err(PetFileError::Format(problem)) if problem.contains("restore")));
        assert!(matches!(check(PETS, 1, BACKUP), Err(PetFileError::Format(problem)) if problem.contains("import")));
        assert!(matches!(check("other", 1, PETS), Err(PetFileError::Format(_))));
        assert!(matches!(check(PETS, 2, PETS), Err(PetFileError::NewerVersion(2))));
    }
}
