use std::cmp::Ordering;

use animal_store_app::ports::{AddPetError, AddedPet};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use crate::PostgresSettings;

/// What became of a create.
pub(crate) type Answer = Result<AddedPet, AddPetError>;

/// All values of one column, as an array.
pub(crate) type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// An animal to be added by a statement that adds any number of its kind.
pub(crate) trait Create: Sized + Send + Sync + 'static {
    /// In the log: what the connection is for.
    const PURPOSE: &'static str;

    /// What the statement is given.
    const TYPES: &'static [Type];

    /// What the statement says of one that it was given.
    type Outcome: Send;

    /// The statement. Its rows begin with the position of what they are about: the first is 1.
    fn statement(settings: &PostgresSettings) -> String;

    /// What is to be set for it besides what every transaction finds set.
    fn setting(_: &PostgresSettings) -> Option<String> {
        None
    }

    /// Which of two comes first in a batch; those that are equal stay as they came.
    fn order(_: &Self, _: &Self) -> Ordering {
        Ordering::Equal
    }

    /// What the statement is given for these.
    fn columns<'a>(creates: &[&'a Self]) -> Vec<Column<'a>>;

    /// What a row says after its position; `None` where that cannot be.
    fn outcome(row: &Row) -> Option<Self::Outcome>;

    /// The answer, now that this is the outcome. What it held is free by then.
    fn answer(self, outcome: Self::Outcome) -> Answer;
}
