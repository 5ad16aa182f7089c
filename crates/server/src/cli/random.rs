use anyhow::Context;

/// Returns 256 random bits for a new API key.
pub(super) fn random_bits() -> anyhow::Result<[u8; 32]> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).context("the operating system provides no random bits")?;
    Ok(bits)
}
