//! What the problems of a subject mean, and what to do about them.

use animal_store_app::Finding;

use crate::checks::OWNS_TABLES;

pub(super) const ROLE: &str = "postgres.role";
pub(super) const DURABILITY: &str = "postgres.durability";
pub(super) const REPLICATION: &str = "postgres.replication";
pub(super) const COPY: &str = "postgres.copy";
pub(super) const PERMISSIONS: &str = "postgres.permissions";
pub(super) const ROWS: &str = "postgres.row_security";
pub(super) const SEQUENCE: &str = "postgres.sequence";
pub(super) const REVOCATIONS: &str = "postgres.revocations";

/// Returns the finding about a subject without a problem.
pub(super) fn no_problem(subject: &'static str) -> Finding {
    let found = match subject {
        COPY => return Finding::copy(subject, false),
        ROLE => "primary",
        DURABILITY => "a crash loses no pet",
        REPLICATION => "commits wait for a standby, or none is connected",
        ROWS => "no policy applies to the user",
        SEQUENCE => "none that the user may read is behind the greatest id",
        REVOCATIONS => "the user cannot hold up a revocation",
        _ => "pets can be read and added",
    };
    Finding::ok(subject, found)
}

/// Returns the finding about a subject with these problems.
pub(super) fn problem(subject: &'static str, problems: &[String]) -> Finding {
    let found = problems.join(", ");
    let statements = problems.join("; ");
    match subject {
        COPY => Finding::copy(subject, true),
        ROLE => {
            let advice = "connect to the primary, for example with all hosts in the URL; \
                          default_transaction_read_only must be off";
            Finding::error(subject, found + ": creates get 503", advice)
        }
        DURABILITY => {
            let advice = format!("set {} = on", problems.join(" = on, "));
            if problems == ["synchronous_commit"] {
                let found =
                    format!("off: {found}; a crash can lose pets that were confirmed with 201");
                Finding::warning(subject, found, advice)
            } else {
                let found =
                    format!("off: {found}; a crash of the machine can destroy the database");
                Finding::error(subject, found, advice)
            }
        }
        REPLICATION => {
            let found = found
                + ": a fail-over can lose pets that were confirmed with 201, and use their ids again";
            let advice = "see \"Fail-over\" in docs/operations/postgresql.md";
            Finding::warning(subject, found, advice)
        }
        ROWS => {
            let advice = "row level security is not supported: run ALTER TABLE … DISABLE ROW LEVEL SECURITY for each \
                          of them, or ALTER ROLE … BYPASSRLS";
            let found = format!("policies apply to {found}: requests get 503");
            Finding::error(subject, found, advice)
        }
        SEQUENCE => {
            let advice = "run `animal-store migrate` as the owner of the tables; or, while nothing is added: \
                          SELECT setval('pets_id_seq', greatest(nextval('pets_id_seq'), (SELECT max(id) FROM pets))), \
                          and likewise for api_key_changes";
            Finding::error(subject, found, advice)
        }
        REVOCATIONS if problems == [OWNS_TABLES] => Finding::ok(subject, found),
        REVOCATIONS => {
            let advice = "after the last instance of an older version has stopped, run these statements as the owner \
                          of the tables (what the user has by a role or as PUBLIC, revoke there); commands that change \
                          keys need another user (storage.postgres.migrate_url)";
            let found = format!("the user can hold up revocations of API keys: {statements}");
            Finding::warning(subject, found, advice)
        }
        _ => {
            let advice = "run these statements as the owner of the tables; if a table is not found, check the \
                          search_path, and the permission USAGE on the schema of the tables";
            let found = format!("the user lacks permissions: {statements}");
            Finding::error(subject, found, advice)
        }
    }
}
