/// Identifier of the category that a pet belongs to: any 64-bit integer. Another service owns the category record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryId(i64);

impl CategoryId {
    /// Wraps any 64-bit integer.
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// Returns the integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}
