use std::{
    io::{self, BufWriter, Write},
    time::SystemTime,
};

use animal_store_app::{
    PetsDigest,
    ports::{PetSink, StoredPet},
};

use crate::{header, pet_object};

/// An export as NDJSON.
pub(crate) struct NdjsonSink {
    writer: BufWriter<Box<dyn Write + Send>>,
    json: Vec<u8>,
}

impl NdjsonSink {
    pub(crate) fn create(writer: Box<dyn Write + Send>, exported_at: SystemTime) -> io::Result<Self> {
        let mut writer = BufWriter::new(writer);
        writeln!(writer, "{}", header::ndjson_line(header::PETS, exported_at))?;
        Ok(Self { writer, json: Vec::new() })
    }
}

impl PetSink for NdjsonSink {
    fn write(&mut self, pets: &[StoredPet]) -> io::Result<()> {
        for pet in pets {
            self.json.clear();
            pet_object::write(&mut self.json, pet);
            self.writer.write_all(&self.json)?;
        }
        Ok(())
    }

    fn finish(&mut self, pets: u64, digest: PetsDigest) -> io::Result<()> {
        writeln!(self.writer, r#"{{"end":{{"pets":{pets},"sha256":"{digest}"}}}}"#)?;
        self.writer.flush()
    }
}
