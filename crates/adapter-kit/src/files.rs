//! Which file is believed.
//!
//! **Problem.** A configuration of another user in the working directory selects another store, and a log that another
//! user plants beside a store replaces its API keys.
//!
//! **Invariant.** A path is followed link by link, and each folder, link and target on the way is judged: its owner,
//! and its mode. Nothing on a read-only mount can be written. In a sticky folder, only the owner of a file can replace
//! it. A group of this process is believed.
//!
//! **Proof.** `files/tests.rs` judges as other users; `which_file.rs` in `crates/server/tests/process` runs the program
//! as them.

mod steps;
#[cfg(test)]
mod tests;

use std::{
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use nix::unistd::{Gid, Uid, getegid, geteuid, getgroups};
use thiserror::Error;

use self::steps::{Step, steps};
use crate::users::{command_of_owner, name, this_user};

const GROUP_MAY_WRITE: u32 = 0o020;
const OTHERS_MAY_WRITE: u32 = 0o002;
const OTHERS_MAY_READ: u32 = 0o004;
const STICKY: u32 = 0o1000;

/// Another user can change a file, or read a secret in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found}: {advice}")]
pub struct Objection {
    /// The folder, link or file, and who can do what with it.
    pub found: String,
    /// What ends the objection.
    pub advice: String,
}

/// The users who may change a file.
#[derive(Debug, Clone)]
pub struct Believed {
    /// Whether this process runs as root.
    is_root: bool,
    owners: Vec<u32>,
    /// `None`: every group.
    groups: Option<Vec<u32>>,
}

impl Believed {
    /// Root and the user of this process, with its groups.
    pub fn this_process() -> Self {
        let groups = getgroups().unwrap_or_default().into_iter();
        let groups = groups.chain([getegid()]).map(Gid::as_raw);
        Self::user(geteuid().as_raw(), groups.collect())
    }

    fn user(user: u32, groups: Vec<u32>) -> Self {
        Self {
            is_root: user == 0,
            owners: vec![user, 0],
            groups: Some(groups),
        }
    }

    /// Adds the owner of the working directory if the path is the name of a file in it.
    #[must_use]
    pub fn and_owner_of_folder(mut self, path: &Path) -> Self {
        if path.parent() == Some(Path::new("")) {
            let folder = Path::new(".").metadata();
            self.owners.extend(folder.map(|folder| folder.uid()));
        }
        self
    }

    /// Returns the first reason not to believe a file. One that cannot be examined has none: it cannot be read either.
    pub fn object(&self, path: &Path) -> Option<Objection> {
        steps(path).iter().find_map(|step| self.object_to(step))
    }

    /// Judges a store and the files beside it, such as its log, which may not exist. The owner of the store is
    /// believed, but in a folder where every user can create one, only by root. Returns the objection to a folder, with
    /// which the store is used nevertheless.
    ///
    /// # Errors
    /// The objection to one of the files.
    pub fn judge_store(
        mut self,
        path: &Path,
        beside: &[PathBuf],
    ) -> Result<Option<Objection>, Objection> {
        if self.is_root {
            // It is not in the group of the service.
            self.groups = None;
        }
        let mut folders = steps(path);
        let store = folders.pop_if(|last| last.metadata.is_file());
        folders.retain(|step| step.metadata.is_dir());
        let owned = match folders.last() {
            Some(folder) if !self.is_root && self.others_write(folder) => Some(folder),
            _ => store.as_ref(),
        };
        self.owners.extend(owned.map(|step| step.metadata.uid()));
        let beside = beside.iter().filter_map(|path| Step::at(path.clone()));
        for file in store.into_iter().chain(beside) {
            if let Some(objection) = self.object_to(&file) {
                return Err(objection);
            }
        }
        let mut folders = folders.iter();
        Ok(folders.find_map(|folder| self.object_to_mode(folder)))
    }

    fn object_to(&self, step: &Step) -> Option<Objection> {
        if self.owners.contains(&step.metadata.uid()) || step.is_read_only {
            return self.object_to_mode(step);
        }
        let owner = name(Uid::from_raw(step.metadata.uid()));
        let path = step.absolute();
        let path = path.display();
        Some(Objection {
            found: format!(
                "{path} belongs to {owner}, and {} runs this process",
                this_user()
            ),
            advice: "examine it, and move it away or use another one".to_owned(),
        })
    }

    fn object_to_mode(&self, step: &Step) -> Option<Objection> {
        let is_sticky = step.metadata.is_dir() && step.metadata.mode() & STICKY != 0;
        (self.others_write(step) && !is_sticky).then(|| step.objection("can write to", "go-w"))
    }

    fn others_write(&self, step: &Step) -> bool {
        let kind = step.metadata.file_type();
        // What other users write to a device, such as /dev/null or a terminal, is not what this process reads.
        if kind.is_symlink() || kind.is_char_device() || step.is_read_only {
            return false;
        }
        let group = step.metadata.gid();
        let is_ours = self
            .groups
            .as_ref()
            .is_none_or(|groups| groups.contains(&group));
        let others = OTHERS_MAY_WRITE | if is_ours { 0 } else { GROUP_MAY_WRITE };
        step.metadata.mode() & others != 0
    }
}

/// Returns the objection to a secret that others may read. The group of a file is that of the service.
pub fn object_to_readers(path: &Path) -> Option<Objection> {
    let secret = Step::at(path.canonicalize().ok()?)?;
    let is_readable = secret.metadata.mode() & OTHERS_MAY_READ != 0;
    is_readable.then(|| secret.objection("can read the secret in", "o-rwx"))
}

impl Step {
    fn objection(&self, can: &str, chmod: &str) -> Objection {
        let path = self.absolute();
        let path = path.display();
        let mode = self.metadata.mode() & 0o777;
        let command = command_of_owner(&self.path, &format!("chmod {chmod} {path}"));
        Objection {
            found: format!("other users {can} {path} (mode {mode:03o})"),
            advice: format!("run {command}"),
        }
    }
}
