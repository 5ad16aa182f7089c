//! Random bits of the operating system.

use animal_store_app::ports::{Cause, RandomSource};

/// The operating system's own source.
pub(crate) struct OsRandom;

impl RandomSource for OsRandom {
    fn bits(&self) -> Result<[u8; 32], Cause> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits)?;
        Ok(bits)
    }
}
