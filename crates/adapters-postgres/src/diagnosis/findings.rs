//! What the problems of a subject mean, and what to do about them. No problem means that all is well.

use animal_store_app::Finding;

use crate::checks::OWNS_TABLES;

pub(super) fn role(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(subject, "primary");
    }
    let found = problems.join(", ") + ": creates get 503";
    let advice = "connect to the primary, for example with all hosts in the URL; default_transaction_read_only must \
                  be off";
    Finding::error(subject, found, advice)
}

pub(super) fn durability(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(subject, "a crash loses no pet");
    }
    let off = format!("off: {}", problems.join(", "));
    let advice = format!("set {} = on", problems.join(" = on, "));
    if problems == ["synchronous_commit"] {
        let found = off + "; a crash can lose pets that were confirmed with 201";
        Finding::warning(subject, found, advice)
    } else {
        let found = off + "; a crash of the machine can destroy the database";
        Finding::error(subject, found, advice)
    }
}

pub(super) fn replication(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        let found = "commits wait for a standby, or none is connected";
        return Finding::ok(subject, found);
    }
    let found = problems.join(", ")
        + ": a fail-over can lose pets that were confirmed with 201, and use their ids again";
    let advice = "see \"Fail-over\" in docs/operations/postgresql.md";
    Finding::warning(subject, found, advice)
}

pub(super) fn copy(subject: &'static str, problems: &[String]) -> Finding {
    Finding::copy(subject, !problems.is_empty())
}

pub(super) fn permissions(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(subject, "pets can be read and added");
    }
    let found = format!("the user lacks permissions: {}", problems.join("; "));
    let advice = "run these statements as the owner of the tables; if a table is not found, check the search_path, and \
                  the permission USAGE on the schema of the tables";
    Finding::error(subject, found, advice)
}

pub(super) fn rows(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(subject, "no policy applies to the user");
    }
    let tables = problems.join(", ");
    let found = format!("policies apply to {tables}: requests get 503");
    let advice = "row level security is not supported: run ALTER TABLE … DISABLE ROW LEVEL SECURITY for each of them, \
                  or ALTER ROLE … BYPASSRLS";
    Finding::error(subject, found, advice)
}

pub(super) fn sequence(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(
            subject,
            "none that the user may read is behind the greatest id",
        );
    }
    let advice = "run `animal-store migrate` as the owner of the tables; or, while nothing is added: SELECT \
                  setval('pets_id_seq', greatest(nextval('pets_id_seq'), (SELECT max(id) FROM pets))), and likewise \
                  for api_key_changes";
    Finding::error(subject, problems.join(", "), advice)
}

pub(super) fn revocations(subject: &'static str, problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok(subject, "the user cannot hold up a revocation");
    }
    if problems == [OWNS_TABLES] {
        return Finding::ok(subject, OWNS_TABLES);
    }
    let statements = problems.join("; ");
    let found = format!("the user can hold up revocations of API keys: {statements}");
    let advice = "after the last instance of an older version has stopped, run these statements as the owner of the \
                  tables (what the user has by a role or as PUBLIC, revoke there); commands that change keys need \
                  another user (storage.postgres.migrate_url)";
    Finding::warning(subject, found, advice)
}
