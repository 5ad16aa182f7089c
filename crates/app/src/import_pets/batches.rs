use std::{
    collections::HashSet,
    mem::take,
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use crate::{
    ports::{BulkPet, PetFileError, PetLine, PetSource},
    transfer::BATCH_SIZE,
};

/// Consecutive lines of a file.
#[derive(Debug)]
pub(super) struct LineBatch {
    /// The lines. The ids of their pets are distinct.
    pub(super) lines: Vec<PetLine>,
    /// `None`: more batches follow. Otherwise: how the file ended after these lines.
    pub(super) end: Option<Result<(), PetFileError>>,
}

/// Reads a file in a thread of its own, one batch ahead, so that it is read while the storage writes.
pub(super) fn read(source: Box<dyn PetSource>, ids: bool) -> Receiver<LineBatch> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut reader = BatchReader { source, ids, next: None };
        loop {
            let batch = reader.next_batch();
            let is_last = batch.end.is_some();
            if sender.send(batch).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

struct BatchReader {
    source: Box<dyn PetSource>,
    ids: bool,
    /// A line that did not fit into the last batch.
    next: Option<PetLine>,
}

impl BatchReader {
    fn next_batch(&mut self) -> LineBatch {
        let mut lines = Vec::new();
        let mut ids = HashSet::new();
        while lines.len() < BATCH_SIZE {
            let line = match take(&mut self.next).map_or_else(|| self.source.next_line(self.ids), |line| Ok(Some(line)))
            {
                Ok(Some(line)) => line,
                Ok(None) => return LineBatch { lines, end: Some(Ok(())) },
                Err(error) => return LineBatch { lines, end: Some(Err(error)) },
            };
            if let Ok(BulkPet { id: Some(id), .. }) = line.pet
                && !ids.insert(id)
            {
                self.next = Some(line);
                break;
            }
            lines.push(line);
        }
        LineBatch { lines, end: None }
    }
}
