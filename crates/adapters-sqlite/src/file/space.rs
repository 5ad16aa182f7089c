//! The space of the file, and of its disk.
//!
//! **Problem.** If creates fill the disk, a leaked API key cannot be revoked.
//!
//! **Invariant.** Creates, copies, backups and sweeps leave a reserve, which changes of API keys may use.
//!
//! **Proof.** `tests/sqlite/full_disk.rs`; the unit test.

use std::{io, path::Path};

use nix::sys::statvfs::statvfs;

use super::identity::log_path;
use crate::error::Problem;

/// Bounds of the reserve, in bytes.
const LEAST_RESERVE: u64 = 16 << 20;
const GREATEST_RESERVE: u64 = 64 << 20;

/// Space of a disk, in bytes.
pub(crate) struct Disk {
    /// Space that this user can still use.
    pub(crate) free: u64,
    pub(crate) reserve: u64,
}

impl Disk {
    /// Returns the disk of a file.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let disk = statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
        Ok(Self {
            free: bytes(disk.blocks_available()),
            reserve: reserve(bytes(disk.blocks())),
        })
    }

    /// Fails if the disk of a file does not have this space beside the reserve.
    pub(crate) fn check(path: &Path, needed: u64) -> Result<(), Problem> {
        let disk = Self::of(path)?;
        if disk.free < disk.reserve.saturating_add(needed) {
            return Err(Problem::Reserve);
        }
        Ok(())
    }
}

fn reserve(disk: u64) -> u64 {
    (disk / 100).clamp(LEAST_RESERVE, GREATEST_RESERVE)
}

/// Returns the size of the log of a file, or 0 if there is none.
pub(crate) fn log_bytes(path: &Path) -> u64 {
    log_path(path).metadata().map_or(0, |log| log.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_64_mib_and_less_on_small_disks() {
        const GB: u64 = 1_000_000_000;
        for (disk, expected) in [
            (0, LEAST_RESERVE),
            (GB, LEAST_RESERVE),
            (3 * GB, 30_000_000),
            (6 * GB, 60_000_000),
            (7 * GB, GREATEST_RESERVE),
            (u64::MAX, GREATEST_RESERVE),
        ] {
            assert_eq!(reserve(disk), expected, "{disk}");
        }
    }
}
