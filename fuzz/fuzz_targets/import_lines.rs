//! A file of pets is read to the same lines however its bytes are split. The valid pets of a file are exported and read
//! as the same pets, and an export without its end does not pass as a complete one.
#![no_main]

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Cursor, Read, Write},
    sync::{Arc, Mutex},
    time::SystemTime,
};

use animal_store_adapters_files::FileFormat;
use animal_store_app::{
    PetsHasher,
    ports::{PetLine, StoredPet},
};
use animal_store_domain::{Pet, PetId};
use animal_store_fuzz::pieces;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for format in [FileFormat::Ndjson, FileFormat::Csv] {
        let lines = read(format, Cursor::new(data.to_vec()));
        let split = Pieces(pieces(data).map(<[u8]>::to_vec).collect());
        assert_eq!(read(format, split), lines);
        let (lines, _) = lines;
        assert!(lines.len() <= data.len());
        let pets: BTreeMap<_, _> = lines.iter().filter_map(stored).map(|stored| (stored.pet.id(), stored)).collect();
        if !pets.is_empty() {
            check_export(format, pets, data.len());
        }
    }
});

/// Returns the lines, and the error at which they end.
fn read(format: FileFormat, reader: impl Read + Send + 'static) -> (Vec<PetLine>, Option<String>) {
    let mut lines = Vec::new();
    let mut source = match format.open(Box::new(reader)) {
        Ok(source) => source,
        Err(error) => return (lines, Some(error.to_string())),
    };
    loop {
        match source.next_line(true) {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => return (lines, None),
            Err(error) => return (lines, Some(error.to_string())),
        }
    }
}

fn stored(line: &PetLine) -> Option<StoredPet> {
    let pet = line.pet.as_ref().ok()?;
    Some(StoredPet { pet: Pet::new(pet.id?, pet.pet.clone()), created_at: pet.created_at? })
}

fn check_export(format: FileFormat, pets: BTreeMap<PetId, StoredPet>, cut: usize) {
    let pets: Vec<_> = pets.into_values().collect();
    let file = SharedBytes::default();
    let mut sink = format.create(Box::new(file.clone()), SystemTime::UNIX_EPOCH).expect("memory");
    let mut hasher = PetsHasher::default();
    pets.iter().for_each(|pet| hasher.add(pet));
    sink.write(&pets).expect("memory");
    sink.finish(hasher.pets(), hasher.digest()).expect("memory");
    let file = file.0.lock().expect("one thread").clone();

    let (lines, error) = read(format, Cursor::new(file.clone()));
    assert_eq!(error, None);
    assert_eq!(lines.iter().map(stored).collect::<Option<Vec<_>>>(), Some(pets));

    // The last line is complete without its line feed.
    let header = file.iter().position(|&byte| byte == b'\n').expect("a header") + 1;
    let cut = header + cut % (file.len() - 1 - header);
    let (_, error) = read(format, Cursor::new(file[..cut].to_vec()));
    assert!(error.is_some(), "{} of {} bytes", cut, file.len());
}

/// A file that is read in pieces.
struct Pieces(VecDeque<Vec<u8>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        piece.drain(..count);
        if !piece.is_empty() {
            self.0.push_front(piece);
        }
        Ok(count)
    }
}

/// A file in memory.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
