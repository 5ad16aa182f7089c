//! Pets in files: exports and imports as NDJSON or CSV ([`FileFormat`]), and backups ([`BackupWriter`],
//! [`BackupFile`]).
//!
//! Every file is read and written as a stream, with one line in memory. A file that the animal store wrote begins with
//! its kind and its version, and ends with the number of its lines and a digest: a file without its end does not pass
//! as a complete one. An import also accepts files of pets that were made elsewhere.

mod backup;
mod csv_sink;
mod csv_source;
mod end;
mod format;
mod header;
mod input;
mod line_digest;
mod lines;
mod ndjson_sink;
mod ndjson_source;
mod pet_object;
mod pet_record;
mod time;

pub use backup::{BackupFile, BackupWriter};
pub use format::{FileFormat, FileFormatError};
