use super::Cause;

/// Bits that nobody can guess.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait RandomSource: Send + Sync {
    /// 256 of them.
    ///
    /// # Errors
    /// Where the operating system has none to give.
    fn bits(&self) -> Result<[u8; 32], Cause>;
}
