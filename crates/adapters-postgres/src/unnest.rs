//! The parameters of a statement on a batch: one array per column.

use tokio_postgres::types::Type;

/// Returns the names of columns as a list: `name, status`.
pub(crate) fn column_names(columns: &[(&str, Type)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Returns the parameters of a statement as the relation `given`, with these columns and the position as `ordinal`.
pub(crate) fn unnest(columns: &[(&str, Type)]) -> String {
    let parameters: Vec<_> = (1..).zip(columns).map(|(number, (_, array))| format!("${number}::{array}")).collect();
    format!("unnest({}) WITH ORDINALITY AS given ({}, ordinal)", parameters.join(", "), column_names(columns))
}
