use animal_store_app::ports::StoreFailure;
use thiserror::Error;
use tokio_postgres::error::DbError;

use crate::error::READ_ONLY;

/// A request was not executed, or its outcome is unknown.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The response to the request.
    pub(crate) failure: StoreFailure,
    pub(crate) affects: Affected,
}

/// What a failure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affected {
    /// A row of one of the requests with this failure: they are executed again in smaller batches.
    Row,
    /// All requests with this failure.
    Batch,
    /// The session may be unable to execute these requests, which had no effect: they are executed in a new one.
    Session,
    /// The connection has to be replaced.
    Connection(Lost),
}

/// Why a connection is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Lost {
    /// After a fail-over, another server accepts writes.
    #[error("{READ_ONLY}")]
    ReadOnly,
    /// Later responses would be delayed as well.
    #[error("the server did not respond in time")]
    NoResponse,
    #[error("the connection could not begin or end a transaction")]
    Transaction,
    #[error("the connection failed before a commit")]
    BeforeCommit,
    #[error("the connection did not report the outcome of a commit")]
    InCommit,
    #[error("a batch panicked")]
    Panic,
}

impl Affected {
    /// Judges the error of a statement that PostgreSQL refused, which had no effect.
    pub(crate) fn by(refused: &DbError) -> Self {
        let in_function = refused.where_().is_some();
        Self::of(refused.code().code(), in_function)
    }

    /// Judges a SQLSTATE. `in_function`: a function reported it, such as that of a trigger, whose author chooses the
    /// code. Any other code may be about a row.
    ///
    /// A session cannot run a statement any more after the type of its result has changed (0A000), after a pooler or
    /// `DEALLOCATE` has taken its name (26000, 42P05), or in a transaction that a pooler left open (25). Names may lead
    /// to other tables than in a new session (3F, 42), and what it has cached may be wrong (XX000).
    fn of(code: &str, in_function: bool) -> Self {
        match code.get(..2).unwrap_or_default() {
            "40" | "53" | "55" | "57" | "58" => Self::Batch,
            "XX" if code != "XX000" => Self::Batch,
            "0A" | "25" | "26" | "34" | "3F" | "42" | "XX" if !in_function => Self::Session,
            _ => Self::Row,
        }
    }
}

impl Failure {
    pub(crate) const fn new(failure: StoreFailure, affects: Affected) -> Self {
        Self { failure, affects }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all_are(codes: &[&str], in_function: bool, expected: Affected) {
        for code in codes {
            assert_eq!(Affected::of(code, in_function), expected, "{code}");
        }
    }

    #[test]
    fn a_statement_that_a_session_cannot_run_any_more_is_about_the_session() {
        let codes = [
            "0A000", "26000", "42P05", "34000", "25P02", "25001", "3F000", "42P01", "42703",
            "42501", "42804", "XX000",
        ];
        all_are(&codes, false, Affected::Session);
    }

    #[test]
    fn data_constraints_and_codes_of_operators_may_be_about_one_row() {
        let codes = [
            "21000", "22P02", "23505", "38000", "39P01", "44000", "54000", "P0001", "P0002",
            "45000", "99001", "ZX001", "PT403",
        ];
        all_are(&codes, false, Affected::Row);
        all_are(&codes, true, Affected::Row);
    }

    #[test]
    fn what_a_function_reports_may_be_about_one_row_whatever_its_code() {
        all_are(
            &["0A000", "42501", "42P01", "25001", "XX000"],
            true,
            Affected::Row,
        );
    }

    #[test]
    fn conflicts_resources_and_operators_are_about_the_database_even_in_a_function() {
        for in_function in [false, true] {
            let codes = [
                "40001", "40P01", "53100", "53300", "55P03", "57014", "58030", "XX001", "XX002",
            ];
            all_are(&codes, in_function, Affected::Batch);
        }
    }

    #[test]
    fn a_code_that_is_too_short_is_no_panic() {
        all_are(&["", "4", "\u{e9}"], false, Affected::Row);
    }
}
