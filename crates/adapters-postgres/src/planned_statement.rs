use tokio_postgres::types::Type;

/// A statement of the adapter, with what its plan must not contain.
pub(crate) struct PlannedStatement {
    /// Name for operators.
    pub(crate) name: &'static str,
    pub(crate) sql: String,
    pub(crate) parameters: Vec<Type>,
    /// Texts of `EXPLAIN` that show a plan whose cost grows with the table.
    pub(crate) excluded: &'static [&'static str],
}
