//! Pending migrations and those of newer programs, for adapters that have a schema.

/// Versions of the migrations of a program, compared with those that a storage records.
///
/// Diesel records the version of a migration: the name of its folder up to the first `_`, without `-`. A folder is
/// named `0001-expand_…` or `0001-contract_…`, so that an older program can derive from the version whether a migration
/// only expanded the schema, which is harmless, or contracted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaComparison {
    /// Migrations of this program that are not recorded, in their order.
    pub pending: Vec<String>,
    /// Expansions by a newer program, with which this one works.
    pub newer: Vec<String>,
    /// Other changes by a newer program, with which this one does not work.
    pub contracted: Vec<String>,
    /// Whether a program from before the first release made the schema. It recorded whole names.
    pub is_older_layout: bool,
    /// Whether no migration is recorded.
    pub is_new: bool,
}

impl SchemaComparison {
    /// Compares the versions of the migrations of this program with the recorded ones.
    pub fn from_versions(program: Vec<String>, recorded: &[String]) -> Self {
        let unknown = recorded.iter().filter(|name| !program.contains(name)).cloned();
        let (newer, contracted) = unknown.partition(|name| is_expansion(name));
        let pending = program.into_iter().filter(|name| !recorded.contains(name)).collect();
        let is_older_layout = recorded.iter().any(|version| version.contains('_'));
        Self { pending, newer, contracted, is_older_layout, is_new: recorded.is_empty() }
    }
}

/// Whether a program that does not contain the migration works with its result.
fn is_expansion(version: &str) -> bool {
    version.ends_with("expand")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn migrations_are_pending_or_recorded_or_of_a_newer_program() {
        let program = names(&["0001expand", "0002contract", "0003expand"]);
        let recorded = names(&["0001expand", "0002contract", "9998expand", "9999contract"]);
        let comparison = SchemaComparison::from_versions(program, &recorded);

        assert_eq!(comparison.pending, ["0003expand"]);
        assert_eq!(comparison.newer, ["9998expand"]);
        assert_eq!(comparison.contracted, ["9999contract"]);
    }

    #[test]
    fn whole_names_are_those_of_an_older_layout() {
        for (version, is_older) in [("0001expand", false), ("0001_expand_create_pets", true)] {
            let comparison = SchemaComparison::from_versions(Vec::new(), &names(&[version]));
            assert_eq!(comparison.is_older_layout, is_older, "{version}");
        }
    }

    #[test]
    fn a_version_that_does_not_promise_an_expansion_is_a_contraction() {
        for name in ["9999", "9999contract", "expand9999", "00000000000000"] {
            let comparison = SchemaComparison::from_versions(Vec::new(), &names(&[name]));
            assert_eq!((comparison.newer, comparison.contracted), (vec![], names(&[name])));
        }
    }
}
