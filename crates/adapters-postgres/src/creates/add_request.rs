use std::cmp::Ordering;

use animal_store_app::ports::{AddPetError, AddedPet};
use tokio_postgres::{Row, types::Type};

use crate::{PostgresSettings, pet_row::Array};

pub(super) type AddResult = Result<AddedPet, AddPetError>;

/// A request to add a pet, by a statement that adds a batch.
pub(crate) trait AddRequest: Sized + Send + Sync + 'static {
    /// Purpose of the connection, for the log.
    const PURPOSE: &'static str;

    /// Result of the statement for a request.
    type Stored: Send;

    /// The columns of the statement's parameters, each with the type of an array of its values.
    fn columns() -> Vec<(&'static str, Type)>;

    /// The statement. Its rows begin with the position of their request in the batch, from 1.
    fn statement(settings: &PostgresSettings) -> String;

    /// A setting of its transactions beside [`PostgresSettings::set_statements`].
    fn setting(_: &PostgresSettings) -> Option<String> {
        None
    }

    /// Order within a batch. Equal requests keep the order in which they came.
    fn lock_order(_: &Self, _: &Self) -> Ordering {
        Ordering::Equal
    }

    /// The values of the columns, for a batch.
    fn arrays<'a>(requests: &[&'a Self]) -> Vec<Array<'a>>;

    /// Decodes the columns after the position; `None` if they are not valid.
    fn stored(row: &Row) -> Option<Self::Stored>;

    /// The result of the request. Releases everything that the request holds.
    fn added(self, stored: Self::Stored) -> AddResult;
}
