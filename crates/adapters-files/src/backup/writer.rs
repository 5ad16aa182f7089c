use std::{
    io::{self, BufWriter, Write},
    time::SystemTime,
};

use animal_store_app::{
    BackupSummary,
    ports::{ApiKeyRecord, BackupSink, IdempotencyRecord, StoredPet},
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{api_key_line::ApiKeyLine, end_line::EndLine, idempotency_line::IdempotencyLine};
use crate::{header, pet_object};

/// A backup that is written.
#[derive(Debug)]
pub struct BackupWriter<W: Write + Send> {
    writer: BufWriter<W>,
    line: Vec<u8>,
    sha256: Sha256,
    written: BackupSummary,
}

impl<W: Write + Send> BackupWriter<W> {
    /// Begins a backup. The writer is buffered.
    ///
    /// # Errors
    /// If the beginning cannot be written.
    pub fn create(writer: W, exported_at: SystemTime) -> io::Result<Self> {
        let line = Vec::new();
        let written = BackupSummary::default();
        let mut backup = Self { writer: BufWriter::new(writer), line, sha256: Sha256::new(), written };
        writeln!(backup.line, "{}", header::ndjson_line(header::BACKUP, exported_at))?;
        backup.write_line()?;
        Ok(backup)
    }

    fn write_json(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.sha256.update(&self.line);
        self.writer.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write + Send> BackupSink for BackupWriter<W> {
    fn write_pets(&mut self, pets: &[StoredPet]) -> io::Result<()> {
        self.written.pets += pets.len() as u64;
        for pet in pets {
            pet_object::write(&mut self.line, pet);
            self.write_line()?;
        }
        Ok(())
    }

    fn write_idempotency_records(&mut self, records: &[IdempotencyRecord]) -> io::Result<()> {
        self.written.idempotency_records += records.len() as u64;
        records.iter().try_for_each(|record| self.write_json(&IdempotencyLine::from_record(record)))
    }

    fn write_api_keys(&mut self, keys: &[ApiKeyRecord]) -> io::Result<()> {
        self.written.api_keys += keys.len() as u64;
        keys.iter().try_for_each(|key| self.write_json(&ApiKeyLine::from_record(key)))
    }

    fn finish(&mut self) -> io::Result<()> {
        let sha256 = hex::encode(self.sha256.clone().finalize());
        self.write_json(&EndLine::new(self.written, sha256))?;
        self.writer.flush()
    }
}
