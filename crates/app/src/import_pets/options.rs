/// Options of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
pub struct ImportOptions {
    /// Each pet keeps the id in the file. Otherwise, the storage assigns new ids.
    pub keep_ids: bool,
    /// The first line that cannot be imported ends the import. Otherwise, it is reported and skipped.
    pub strict: bool,
    /// Reads and checks the file only. Ids are not compared with those of the storage or of other lines.
    pub dry_run: bool,
    /// Continues an earlier import of the same file after its last line that is done. If there is none, the import
    /// begins at the first line.
    pub resume: bool,
}

/// Result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportSummary {
    /// Number of lines that an earlier import of this file had done.
    pub resumed: u64,
    /// Whether an earlier import of this file was finished, and this one found no other lines.
    pub imported_before: bool,
    /// Number of pets that were added, or would be added without `dry_run`.
    pub added: u64,
    /// Number of pets that the storage has already under the same id.
    pub existing: u64,
    /// Number of lines that were refused.
    pub refused: u64,
    /// Whether the observer stopped the import before its end.
    pub stopped: bool,
}

impl ImportSummary {
    /// Number of lines that are done, including those of an earlier import.
    pub const fn lines(&self) -> u64 {
        self.resumed + self.added + self.existing + self.refused
    }
}
