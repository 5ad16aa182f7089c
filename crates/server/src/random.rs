//! Random bits of the operating system, for new API keys.

use anyhow::Context;

/// Returns 256 random bits.
///
/// # Errors
/// If the operating system provides none.
pub(crate) fn bits() -> anyhow::Result<[u8; 32]> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).context("the operating system provides no random bits")?;
    Ok(bits)
}
