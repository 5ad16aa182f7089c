use animal_store_app::Finding;

use super::inspection::{Inspected, Inspection};

/// The missing tables, and the permissions that the current user lacks, as the statement that grants them.
/// `docs/operations.md` lists the permissions.
const MISSING: &str = "
    WITH needed (relation, kind, privilege) AS (VALUES
        ('pets', '', 'SELECT'), ('pets', '', 'INSERT'), ('pets_id_seq', 'SEQUENCE ', 'USAGE'),
        ('idempotency_keys', '', 'SELECT'), ('idempotency_keys', '', 'INSERT'),
        ('idempotency_keys', '', 'UPDATE'), ('idempotency_keys', '', 'DELETE'))
    SELECT to_regclass(relation) IS NOT NULL,
        CASE WHEN to_regclass(relation) IS NULL THEN relation
            ELSE format('GRANT %s ON %s%I TO %I;', string_agg(privilege, ', '), kind, relation, current_user) END
    FROM needed
    WHERE CASE WHEN to_regclass(relation) IS NULL THEN true
        WHEN kind = '' THEN NOT has_table_privilege(relation, privilege)
        ELSE NOT has_sequence_privilege(relation, privilege) END
    GROUP BY relation, kind ORDER BY relation";

const SUBJECT: &str = "postgres.permissions";

/// `pending`: whether migrations are pending, which may create the tables.
pub(super) async fn inspect(inspection: &Inspection, pending: bool) -> Inspected {
    let rows = inspection.rows(MISSING).await?;
    let (mut relations, mut grants) = (Vec::new(), Vec::new());
    for row in &rows {
        let (exists, text): (bool, &str) = (row.try_get(0)?, row.try_get(1)?);
        if exists { grants.push(text) } else { relations.push(text) }
    }
    let found = format!("the user does not find {}", relations.join(", "));
    Ok(vec![match (relations.is_empty(), grants.is_empty()) {
        (true, true) => Finding::ok(SUBJECT, "pets can be read and added"),
        (true, false) => {
            let found = "the user lacks permissions: some requests get 503";
            Finding::error(SUBJECT, found, format!("as the owner of the tables: {}", grants.join(" ")))
        }
        (false, _) if pending => Finding::unknown(SUBJECT, found, "run the pending migrations first"),
        (false, _) => Finding::error(
            SUBJECT,
            found,
            "check the search_path, and the permission USAGE on the schema of the tables",
        ),
    }])
}
