//! Pending migrations and those of newer programs, for adapters that have a schema.

/// Names of migrations of a program, compared with those that a storage records.
///
/// A storage records whole names, so that an older program can derive from the name whether a migration only expanded
/// the schema, which is harmless, or contracted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaComparison {
    /// Migrations of this program that are not recorded, in their order.
    pub pending: Vec<String>,
    /// Expansions by a newer program, with which this one works.
    pub newer: Vec<String>,
    /// Other changes by a newer program, with which this one does not work.
    pub contracted: Vec<String>,
}

impl SchemaComparison {
    /// Compares the names of the migrations of this program with the recorded ones.
    pub fn from_names(program: Vec<String>, recorded: &[String]) -> Self {
        let unknown = recorded.iter().filter(|name| !program.contains(name)).cloned();
        let (newer, contracted) = unknown.partition(|name| is_expansion(name));
        let pending = program.into_iter().filter(|name| !recorded.contains(name)).collect();
        Self { pending, newer, contracted }
    }
}

/// Whether a program that does not contain the migration works with its result.
fn is_expansion(name: &str) -> bool {
    name.contains("_expand_") && !name.contains("_contract_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn migrations_are_pending_or_recorded_or_of_a_newer_program() {
        let program = names(&["0001_expand_a", "0002_contract_b", "0003_expand_c"]);
        let recorded = names(&["0001_expand_a", "0002_contract_b", "9998_expand_x", "9999_contract_y"]);
        let comparison = SchemaComparison::from_names(program, &recorded);

        assert_eq!(comparison.pending, ["0003_expand_c"]);
        assert_eq!(comparison.newer, ["9998_expand_x"]);
        assert_eq!(comparison.contracted, ["9999_contract_y"]);
    }

    #[test]
    fn a_name_that_does_not_promise_an_expansion_is_a_contraction() {
        for name in ["9999", "9999_contract_x", "9999_expand_x_contract_y", "00000000000000"] {
            let comparison = SchemaComparison::from_names(Vec::new(), &names(&[name]));
            assert_eq!((comparison.newer, comparison.contracted), (vec![], names(&[name])));
        }
    }
}
