use std::{fs::Metadata, io, os::unix::fs::MetadataExt, path::Path};

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    /// Returns the identity of the file that the path names now. The file is not opened.
    pub(super) fn from_path(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::from_metadata(&metadata))
    }

    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}
