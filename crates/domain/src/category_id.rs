/// The category an animal belongs to: any 64-bit integer. The category record is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryId(i64);

impl CategoryId {
    /// Takes any 64-bit integer.
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}
