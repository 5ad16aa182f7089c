use std::{
    io::{self, Write},
    time::SystemTime,
};

use animal_store_app::{
    PetsDigest,
    ports::{PetSink, StoredPet},
};
use animal_store_domain::PetStatus;
use csv::{Writer, WriterBuilder};

use crate::{end, header, time};

/// An export as CSV.
pub(crate) struct CsvSink {
    writer: Writer<Box<dyn Write + Send>>,
}

/// The columns, in their order.
pub(crate) const COLUMNS: [&str; 5] = ["id", "name", "categoryId", "status", "createdAt"];

impl CsvSink {
    pub(crate) fn create(writer: Box<dyn Write + Send>, exported_at: SystemTime) -> io::Result<Self> {
        let mut writer = WriterBuilder::new().flexible(true).buffer_capacity(1 << 16).from_writer(writer);
        writer.write_record([header::csv_line(exported_at)])?;
        writer.write_record(COLUMNS)?;
        Ok(Self { writer })
    }
}

impl PetSink for CsvSink {
    fn write(&mut self, pets: &[StoredPet]) -> io::Result<()> {
        for StoredPet { pet, created_at } in pets {
            let new_pet = pet.new_pet();
            self.writer.write_record([
                &*pet.id().get().to_string(),
                new_pet.name().as_str(),
                &new_pet.category_id().get().to_string(),
                new_pet.status().map_or("", PetStatus::as_str),
                &time::format_creation_time(*created_at).to_string(),
            ])?;
        }
        Ok(())
    }

    fn finish(&mut self, pets: u64, digest: PetsDigest) -> io::Result<()> {
        self.writer.write_record([end::csv_line(pets, digest)])?;
        self.writer.flush()
    }
}
