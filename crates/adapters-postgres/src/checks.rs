//! Queries about a server and the current user, which try no write. Each returns a text per problem.

use tokio_postgres::Client;

use crate::error::ConnectionError;

/// Returns why nothing can be written, whatever the permissions.
pub(crate) const READ_ONLY_REASON: &str = "
    SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a standby' ELSE 'transactions are read-only' END
    WHERE current_setting('transaction_read_only') = 'on'";

/// Returns the settings that are off, and by which a crash can lose what was confirmed.
pub(crate) const NOT_DURABLE: &str = "
    SELECT name FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'";

/// Returns a text if creates would get ids that are used. The position of a sequence that was never used is `NULL`.
pub(crate) const SEQUENCE_BEHIND: &str = "
    SELECT format('the greatest id is %s, and the sequence is at %s', greatest, coalesce(position, 0))
    FROM (SELECT max(id) AS greatest, pg_sequence_last_value('pets_id_seq') AS position FROM pets) AS ids
    WHERE coalesce(position, 0) < greatest";

/// Returns a text if sessions keep ids for later, so that ids do not ascend.
pub(crate) const SEQUENCE_CACHED: &str = "
    SELECT format('each session takes %s ids at once: ALTER SEQUENCE pets_id_seq CACHE 1', seqcache)
    FROM pg_sequence WHERE seqrelid = to_regclass('pets_id_seq') AND seqcache > 1";

/// Returns the tables whose policies apply to the current user.
pub(crate) const ROW_SECURITY: &str = "
    SELECT relation.oid::regclass::text
    FROM unnest(ARRAY['pets', 'idempotency_keys', 'idempotency_readings', 'api_keys', 'api_key_tokens',
        'api_key_state', 'api_key_marks', 'api_key_uses', 'api_key_uses_since', 'api_key_changes']) AS name
    JOIN pg_class AS relation ON relation.oid = to_regclass(name)
    WHERE row_security_active(relation.oid)";

/// Returns a text if the mark of a copy exists.
pub(crate) const UNFINISHED: &str =
    "SELECT 'unfinished' WHERE to_regclass('unfinished_copy') IS NOT NULL";

/// Returns the statement that permits the current user to create tables, if it lacks that.
pub(crate) const CANNOT_CREATE: &str = "
    SELECT format('GRANT CREATE ON SCHEMA %I TO %I', current_schema(), current_user)
    WHERE NOT has_schema_privilege(current_schema(), 'CREATE')";

/// Returns whether commits do not wait for the standbys that are connected.
pub(crate) const ASYNCHRONOUS: &str = "
    SELECT 'asynchronous' WHERE EXISTS (SELECT FROM pg_stat_replication WHERE NOT EXISTS
            (SELECT FROM pg_replication_slots WHERE active_pid = pid AND slot_type = 'logical'))
        AND (current_setting('synchronous_standby_names') = ''
            OR current_setting('synchronous_commit') IN ('off', 'local'))";

/// Returns statements that wait for the creates in flight, hold up others until the end of the transaction, and set the
/// sequence to `greatest` if it is behind. A create locks the table before it takes an id from the sequence, and until
/// its commit. `nextval` keeps a sequence that was set and not used since from moving backwards.
pub(crate) fn advance_sequence(greatest: &str) -> String {
    format!(
        "LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE;
        SELECT setval('pets_id_seq', greatest(nextval('pets_id_seq'), {greatest}))
        WHERE coalesce(pg_sequence_last_value('pets_id_seq'), 0) < {greatest}"
    )
}

/// Returns a query for the statements that grant what the current user lacks. `needed` has tables and sequences, and
/// the permissions on them.
pub(crate) fn missing_permissions(needed: &[(&str, &str)]) -> String {
    let values: Vec<_> = needed
        .iter()
        .map(|(name, permissions)| format!("('{name}', '{permissions}')"))
        .collect();
    let needed = values.join(", ");
    format!(
        "SELECT CASE WHEN relation.oid IS NULL THEN format('%I is not found', name)
            ELSE format('GRANT %s ON %s%I TO %I', string_agg(permission, ', ' ORDER BY permission),
                CASE relkind WHEN 'S' THEN 'SEQUENCE ' END, name, current_user) END
        FROM (VALUES {needed}) AS needed (name, permissions)
            CROSS JOIN unnest(string_to_array(permissions, ', ')) AS permission
            LEFT JOIN pg_class AS relation ON relation.oid = to_regclass(name)
        WHERE CASE WHEN relation.oid IS NULL THEN true
            WHEN relkind = 'S' THEN NOT has_sequence_privilege(relation.oid, permission)
            ELSE NOT has_table_privilege(relation.oid, permission) END
        GROUP BY name, relation.oid, relkind ORDER BY name"
    )
}

/// Returns a query for the statements that leave the current user nothing but `SELECT` on these tables, unless it is an
/// owner of them. A permission on one column is one on the whole table here: it suffices to lock rows.
pub(crate) fn superfluous_permissions(tables: &[&str]) -> String {
    let tables = tables.join("', '");
    format!(
        "SELECT format('REVOKE %s ON %I FROM %I', string_agg(permission, ', ' ORDER BY permission), relname, current_user)
        FROM unnest(ARRAY['{tables}']) AS name
            JOIN pg_class AS relation ON relation.oid = to_regclass(name)
            CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS permission
        WHERE NOT pg_has_role(relowner, 'MEMBER')
            AND CASE WHEN permission IN ('INSERT', 'UPDATE', 'REFERENCES')
                THEN has_any_column_privilege(relation.oid, permission)
                ELSE has_table_privilege(relation.oid, permission) END
        GROUP BY relname ORDER BY relname"
    )
}

/// Returns the texts that one of these queries finds. It is not prepared, so it works through any pooler.
pub(crate) async fn texts(client: &Client, query: &str) -> Result<Vec<String>, ConnectionError> {
    let rows = client.query_typed(query, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?)
}
