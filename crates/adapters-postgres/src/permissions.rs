//! Permissions that the current user lacks, without trying a write.

use tokio_postgres::{Error, Row};

/// A table or a sequence, and the permissions on it that are needed.
pub(crate) type Needed = (&'static str, &'static str);

/// Returns a query for [`missing`].
pub(crate) fn query(needed: &[Needed]) -> String {
    let needed: Vec<_> = needed.iter().map(|(name, permissions)| format!("('{name}', '{permissions}')")).collect();
    format!(
        "SELECT CASE WHEN relation.oid IS NULL THEN format('%I is not found', name)
            ELSE format('GRANT %s ON %s%I TO %I', string_agg(permission, ', ' ORDER BY permission),
                CASE relkind WHEN 'S' THEN 'SEQUENCE ' END, name, current_user) END
        FROM (VALUES {}) AS needed (name, permissions)
            CROSS JOIN unnest(string_to_array(permissions, ', ')) AS permission
            LEFT JOIN pg_class AS relation ON relation.oid = to_regclass(name)
        WHERE CASE WHEN relation.oid IS NULL THEN true
            WHEN relkind = 'S' THEN NOT has_sequence_privilege(relation.oid, permission)
            ELSE NOT has_table_privilege(relation.oid, permission) END
        GROUP BY name, relation.oid, relkind ORDER BY name",
        needed.join(", ")
    )
}

/// Returns what the current user lacks, as the statements that grant it. `None` if nothing is missing.
pub(crate) fn missing(rows: &[Row]) -> Result<Option<String>, Error> {
    let missing = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<&str>, _>>()?;
    Ok((!missing.is_empty()).then(|| format!("the user lacks permissions: {}", missing.join("; "))))
}
