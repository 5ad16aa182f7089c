use sha2::{Digest, Sha256};

/// Digest of all lines so far: the digest of each line covers the digest before it.
#[derive(Debug, Default)]
pub(crate) struct LineDigest([u8; 32]);

impl LineDigest {
    /// Adds a line, in parts with unambiguous ends. Returns the digest.
    pub(crate) fn add<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        let mut sha256 = Sha256::new_with_prefix(self.0);
        for part in parts {
            sha256.update((part.len() as u64).to_be_bytes());
            sha256.update(part);
        }
        self.0 = sha256.finalize().into();
        self.0
    }
}
