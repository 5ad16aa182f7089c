//! Pending migrations and those of newer programs, for adapters that have a schema.

const OLDER_LAYOUT: &str = "a program from before version 0.1.0 made the tables: export the pets with that program \
    (animal-store pets export --output FILE), and import FILE into a new storage with this one (animal-store pets \
    import FILE)";

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
    /// Whether no migration is recorded.
    pub is_new: bool,
}

impl SchemaComparison {
    /// Compares the versions of the migrations of this program with the recorded ones.
    ///
    /// # Errors
    /// Why this program does not work with the schema, and what to do.
    pub fn from_versions(program: Vec<String>, recorded: &[String]) -> Result<Self, String> {
        // Whole names were recorded before the first release.
        if recorded.iter().any(|version| version.contains('_')) {
            return Err(OLDER_LAYOUT.to_owned());
        }
        let unknown = recorded
            .iter()
            .filter(|version| !program.contains(version))
            .cloned();
        let (newer, contracted): (Vec<_>, Vec<_>) =
            unknown.partition(|version| version.ends_with("expand"));
        if !contracted.is_empty() {
            return Err(format!(
                "a newer program has made changes that this one cannot work with: {}; use its release, or restore a \
                 backup",
                contracted.join(", ")
            ));
        }
        let pending = program
            .into_iter()
            .filter(|version| !recorded.contains(version))
            .collect();
        Ok(Self {
            pending,
            newer,
            is_new: recorded.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(recorded: &[&str]) -> Result<SchemaComparison, String> {
        let versions = |versions: &[&str]| {
            versions
                .iter()
                .map(|version| (*version).to_owned())
                .collect::<Vec<_>>()
        };
        SchemaComparison::from_versions(
            versions(&["0001expand", "0002contract", "0003expand"]),
            &versions(recorded),
        )
    }

    #[test]
    fn migrations_are_pending_or_recorded_or_expansions_of_a_newer_program() {
        let compared = compare(&["0001expand", "0002contract", "9998expand"]).unwrap();
        assert_eq!(
            (compared.pending, compared.newer),
            (vec!["0003expand".to_owned()], vec!["9998expand".to_owned()])
        );
    }

    #[test]
    fn whole_names_are_those_of_an_older_layout() {
        assert_eq!(
            compare(&["0001_expand_create_pets"]).unwrap_err(),
            OLDER_LAYOUT
        );
    }

    #[test]
    fn a_version_that_does_not_promise_an_expansion_is_a_contraction() {
        for version in ["9999", "9999contract", "expand9999", "00000000000000"] {
            let refusal = compare(&["0001expand", version]).unwrap_err();
            assert!(
                refusal.contains(&format!("cannot work with: {version}; use its release")),
                "{refusal}"
            );
        }
    }
}
