//! The way of a path.

use std::{
    fs::Metadata,
    path::{Path, PathBuf, absolute},
};

use nix::sys::statvfs::{FsFlags, statvfs};

/// More than a path that Linux follows has.
const MAX_STEPS: usize = 4096;

/// A folder, a link or a file that decides what a path names.
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) metadata: Metadata,
    pub(super) is_read_only: bool,
}

impl Step {
    pub(super) fn at(path: PathBuf) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        // A link is as writable as its folder.
        let mount = path.parent().filter(|_| metadata.is_symlink());
        let mount = statvfs(mount.unwrap_or(&path));
        let is_read_only = mount.is_ok_and(|mount| mount.flags().contains(FsFlags::ST_RDONLY));
        Some(Self {
            path,
            metadata,
            is_read_only,
        })
    }

    /// Returns the path for a message.
    pub(super) fn absolute(&self) -> PathBuf {
        absolute(&self.path).unwrap_or_default()
    }
}

/// Returns each step of a path, as far as it can be examined. A relative path begins with the working directory, which
/// stays the same whatever happens to the folders above it.
pub(super) fn steps(path: &Path) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut folder = PathBuf::new();
    let mut rest = Path::new(".").join(path);
    while let Some(component) = rest.components().next()
        && let Some(step) = Step::at(folder.join(component))
        && steps.len() < MAX_STEPS
    {
        let after: PathBuf = rest.components().skip(1).collect();
        if let Ok(target) = step.path.read_link() {
            rest = target.join(after);
        } else {
            folder.clone_from(&step.path);
            rest = after;
        }
        steps.push(step);
    }
    steps
}
