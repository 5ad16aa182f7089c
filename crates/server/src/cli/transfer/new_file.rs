use std::{
    fs::{File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use tempfile::NamedTempFile;

/// The umask removes some of these permissions.
const MODE: u32 = 0o666;

/// A file that gets its name when it is complete. Until then it has a temporary name in the same folder. If it is
/// dropped, it is deleted.
pub(in crate::cli) struct NewFile {
    temporary: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// # Errors
    /// If there is a file with this name, or if the folder cannot be written.
    pub(in crate::cli) fn create(path: &Path) -> anyhow::Result<Self> {
        ensure!(path.symlink_metadata().is_err(), "{} exists: choose another name", path.display());
        let prefix = format!(".{}.partial-", path.file_name().unwrap_or_default().to_string_lossy());
        let temporary = tempfile::Builder::new()
            .prefix(&prefix)
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(folder(path))
            .with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Self { temporary, path: path.to_owned() })
    }

    /// Returns a writer of the file.
    ///
    /// # Errors
    /// If the operating system refuses another file descriptor.
    pub(in crate::cli) fn writer(&self) -> io::Result<File> {
        self.temporary.as_file().try_clone()
    }

    /// Writes the file to the disk and gives it its name.
    ///
    /// # Errors
    /// If it cannot be written, or if there is a file with this name by now.
    pub(in crate::cli) fn finish(self) -> anyhow::Result<()> {
        let Self { temporary, path } = self;
        let synced = temporary.as_file().sync_all();
        let persisted = synced.and_then(|()| Ok(temporary.persist_noclobber(&path)?));
        let named = persisted.and_then(|_| File::open(folder(&path))?.sync_all());
        named.with_context(|| format!("{} cannot be written", path.display()))
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
