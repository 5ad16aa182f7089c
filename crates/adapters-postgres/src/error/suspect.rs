/// What a refused statement may be about. It had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspect {
    /// One of the rows: the others of the batch may be accepted.
    Request,
    /// The session: a new one may accept the same statement.
    Session,
    /// The database: the next attempt may succeed.
    Database,
}

impl Suspect {
    /// Judges a SQLSTATE. `in_function`: a function reported it, such as that of a trigger, whose author chooses the
    /// code.
    ///
    /// A session cannot run a statement any more after the type of its result has changed (0A000), after a pooler or
    /// `DEALLOCATE` has taken its name (26000, 42P05), or in a transaction that a pooler left open (25). Names may lead
    /// to other tables than in a new session (3F, 42), and what it has cached may be wrong (XX000).
    pub(crate) fn of(code: &str, in_function: bool) -> Self {
        match code.get(..2).unwrap_or_default() {
            "40" | "53" | "55" | "57" | "58" => Self::Database,
            "XX" if code != "XX000" => Self::Database,
            "0A" | "25" | "26" | "34" | "3F" | "42" | "XX" if !in_function => Self::Session,
            _ => Self::Request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all_are(codes: &[&str], in_function: bool, expected: Suspect) {
        for code in codes {
            assert_eq!(Suspect::of(code, in_function), expected, "{code}");
        }
    }

    #[test]
    fn a_statement_that_a_session_cannot_run_any_more_is_about_the_session() {
        let codes = [
            "0A000", "26000", "42P05", "34000", "25P02", "25001", "3F000", "42P01", "42703",
            "42501", "42804", "XX000",
        ];
        all_are(&codes, false, Suspect::Session);
    }

    #[test]
    fn data_constraints_and_codes_of_operators_may_be_about_one_row() {
        let codes = [
            "21000", "22P02", "23505", "38000", "39P01", "44000", "54000", "P0001", "P0002",
            "45000", "99001", "ZX001", "PT403",
        ];
        all_are(&codes, false, Suspect::Request);
        all_are(&codes, true, Suspect::Request);
    }

    #[test]
    fn what_a_function_reports_may_be_about_one_row_whatever_its_code() {
        all_are(
            &["0A000", "42501", "42P01", "25001", "XX000"],
            true,
            Suspect::Request,
        );
    }

    #[test]
    fn conflicts_resources_and_operators_are_about_the_database_even_in_a_function() {
        for in_function in [false, true] {
            let codes = [
                "40001", "40P01", "53100", "53300", "55P03", "57014", "58030", "XX001", "XX002",
            ];
            all_are(&codes, in_function, Suspect::Database);
        }
    }

    #[test]
    fn a_code_that_is_too_short_is_no_panic() {
        all_are(&["", "4", "\u{e9}"], false, Suspect::Request);
    }
}
