//! Imports pets from a file, in batches.
//!
//! Each batch is written in one commit, together with the number of lines that are done and their digest. An import
//! that was interrupted at any moment is therefore continued after the last line that was written: no pet is added
//! twice and none is lost.

mod batches;
mod error;
mod options;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use sha2::{Digest, Sha256};

use self::batches::LineBatch;
pub use self::{
    error::{ImportError, ImportErrorReason},
    options::{ImportOptions, ImportSummary},
};
use crate::{
    ImportObserver, TransferPass,
    ports::{
        AddedBulkPet, BulkPet, BulkStorage, BulkStorageError, ImportProgress, ImportSource, ImportStep, PetBatch,
        PetLine, PetSource,
    },
};

/// Adds the pets of a file to a storage.
pub struct ImportPets {
    storage: Arc<dyn BulkStorage>,
}

/// The state of one call.
struct Import<'a> {
    storage: &'a dyn BulkStorage,
    source: ImportSource,
    options: ImportOptions,
    observer: &'a mut dyn ImportObserver,
    progress: Option<ImportProgress>,
    done: ImportSummary,
}

impl ImportPets {
    /// Creates the use case over a storage.
    pub fn new(storage: Arc<dyn BulkStorage>) -> Self {
        Self { storage }
    }

    /// Adds the pet of each line. A line that cannot be imported is reported to the observer and skipped. A creation
    /// time in the file is kept. With ids, a pet that the storage has already is not added again, and a line with the
    /// id of another pet is refused.
    ///
    /// The file is read in a thread of its own, which may outlive a call that is stopped or fails.
    ///
    /// # Errors
    /// See [`ImportErrorReason`].
    pub async fn execute(
        &self,
        source: Box<dyn PetSource>,
        options: ImportOptions,
        observer: &mut dyn ImportObserver,
    ) -> Result<ImportSummary, ImportError> {
        let mut import = Import {
            storage: &*self.storage,
            source: source.id(),
            options,
            observer,
            progress: None,
            done: ImportSummary::default(),
        };
        match import.run(source).await {
            Ok(()) => Ok(import.done),
            Err(reason) => Err(ImportError { done: import.done, reason }),
        }
    }
}

impl Import<'_> {
    async fn run(&mut self, mut source: Box<dyn PetSource>) -> Result<(), ImportErrorReason> {
        if !self.options.dry_run {
            self.resume(&mut *source).await?;
        }
        self.observer.started(TransferPass::Transfer, None);
        let batches = batches::read(source, self.options.keep_ids);
        loop {
            let LineBatch { mut lines, end } = batches.recv().expect("the reader sends the end of the file");
            // A signal may have ended the program that writes the file as well, in the middle of a line.
            if end.is_some() && self.observer.advanced(self.done.lines()).is_break() {
                self.done.stopped = true;
                return Ok(());
            }
            let refused = if self.options.strict { cut_before_refused(&mut lines) } else { None };
            let refused = match self.add(&mut lines).await? {
                None => refused,
                taken => taken,
            };
            if let Some((line, reason)) = refused {
                return Err(ImportErrorReason::RefusedLine { line, reason });
            }
            let stop = self.observer.advanced(self.done.lines()).is_break();
            match end {
                None if stop => {
                    self.done.stopped = true;
                    return Ok(());
                }
                None => (),
                Some(Err(error)) => return Err(ImportErrorReason::Source(error)),
                Some(Ok(())) => return self.finish().await,
            }
        }
    }

    /// Keeps the progress, so that a repeated import adds nothing if this process ends before it reports success.
    async fn finish(&mut self) -> Result<(), ImportErrorReason> {
        match self.progress {
            // A dry run, or a file without lines.
            None => {}
            Some(progress) if progress.finished => self.done.imported_before = true,
            Some(_) => self.storage.finish_import(self.source).await?,
        }
        Ok(())
    }

    /// Skips the lines that an earlier import of the file has done. Without `resume`, a finished import is repeated.
    async fn resume(&mut self, source: &mut dyn PetSource) -> Result<(), ImportErrorReason> {
        self.progress = self.storage.import_progress(self.source).await?;
        let Some(progress) = self.progress else { return Ok(()) };
        if !self.options.resume {
            return if progress.finished { Ok(()) } else { Err(ImportErrorReason::Unfinished(progress.lines)) };
        }
        let mut digest = None;
        for _ in 0..progress.lines {
            let line = source.next_line(self.options.keep_ids).map_err(ImportErrorReason::Source)?;
            digest = line.map(|line| line.digest);
        }
        if digest.map(|digest| self.progress_digest(digest)) != Some(progress.digest) {
            return Err(ImportErrorReason::OtherFile(progress.lines));
        }
        self.done.resumed = progress.lines;
        Ok(())
    }

    /// Returns the digest of lines that are done. It depends on the use of ids: an import that kept the first ids
    /// cannot be resumed with new ones.
    fn progress_digest(&self, lines: [u8; 32]) -> [u8; 32] {
        Sha256::new().chain_update(lines).chain_update([self.options.keep_ids.into()]).finalize().into()
    }

    /// Adds the pets of a batch. If the import is strict and an id is taken, adds the pets before it and returns its
    /// line and the reason.
    async fn add(&mut self, lines: &mut Vec<PetLine>) -> Result<Option<(u64, String)>, ImportErrorReason> {
        let mut taken = None;
        let outcomes = loop {
            match self.write(lines).await {
                Err(BulkStorageError::IdTaken(id)) => {
                    let has_id = |line: &PetLine| line.pet.as_ref().is_ok_and(|pet| pet.id == Some(id));
                    let position = lines.iter().position(has_id).expect("the id is one of the batch");
                    taken = Some((lines[position].number, BulkStorageError::IdTaken(id).to_string()));
                    lines.truncate(position);
                }
                outcomes => break outcomes?,
            }
        };
        self.count(lines, outcomes);
        Ok(taken)
    }

    async fn write(&mut self, lines: &[PetLine]) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        let Some(last) = lines.last() else { return Ok(Vec::new()) };
        if self.options.dry_run {
            return Ok(Vec::new());
        }
        let lines_done = self.done.lines() + lines.len() as u64;
        let to = ImportProgress { lines: lines_done, digest: self.progress_digest(last.digest), finished: false };
        let batch = PetBatch {
            pets: lines.iter().filter_map(|line| line.pet.as_ref().ok()).cloned().collect::<Vec<BulkPet>>(),
            refuse_taken_ids: self.options.strict,
            step: Some(ImportStep { source: self.source, from: self.progress, to }),
        };
        let outcomes = self.storage.add_pets(batch).await?;
        self.progress = Some(to);
        Ok(outcomes)
    }

    /// Counts the lines of a batch, and reports those that were refused.
    fn count(&mut self, lines: &[PetLine], outcomes: Vec<AddedBulkPet>) {
        let mut outcomes = outcomes.into_iter();
        for line in lines {
            match &line.pet {
                Err(reason) => self.refuse(line.number, reason),
                Ok(pet) => match (outcomes.next(), pet.id) {
                    (Some(AddedBulkPet::IdTaken), Some(id)) => {
                        self.refuse(line.number, &BulkStorageError::IdTaken(id).to_string());
                    }
                    (Some(AddedBulkPet::Exists), _) => self.done.existing += 1,
                    _ => self.done.added += 1,
                },
            }
        }
    }

    fn refuse(&mut self, line: u64, reason: &str) {
        self.done.refused += 1;
        self.observer.refused(line, reason);
    }
}

/// Removes the first line without a valid pet and all lines after it. Returns its number and the reason.
fn cut_before_refused(lines: &mut Vec<PetLine>) -> Option<(u64, String)> {
    let position = lines.iter().position(|line| line.pet.is_err())?;
    let refused = lines.drain(position..).next()?;
    Some((refused.number, refused.pet.err()?))
}
