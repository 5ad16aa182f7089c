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

/// Returns the tables whose ids the current user may compare with their sequence.
pub(crate) const SEQUENCES: &str = "
    SELECT name FROM unnest(ARRAY['pets', 'api_key_changes']) AS name
    WHERE has_table_privilege(name, 'SELECT') AND has_sequence_privilege(name || '_id_seq', 'SELECT, USAGE')";

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

/// What [`superfluous_permissions`] returns of the only user, who is or can become the owner of the tables.
pub(crate) const OWNS_TABLES: &str = "the user has the permissions of the owner of the tables";

/// Returns a text if the mark of a copy exists.
pub(crate) const UNFINISHED: &str =
    "SELECT 'unfinished' WHERE to_regclass('unfinished_copy') IS NOT NULL";

/// Returns the statement that permits the current user to create tables, if it lacks that.
pub(crate) const CANNOT_CREATE: &str = "
    SELECT CASE WHEN current_schema() IS NULL THEN 'USAGE on a schema of the search_path'
        ELSE format('GRANT CREATE ON SCHEMA %I TO %I', current_schema(), current_user) END
    WHERE has_schema_privilege(current_schema(), 'CREATE') IS NOT TRUE";

/// Returns the owner of the tables if the current user may not change them.
pub(crate) const CANNOT_ALTER: &str = "
    SELECT format('the owner of the tables is %I', pg_get_userbyid(relowner)) FROM pg_class
    WHERE oid = to_regclass('pets') AND NOT pg_has_role(relowner, 'USAGE')";

/// Returns whether commits do not wait for the standbys that are connected.
pub(crate) const ASYNCHRONOUS: &str = "
    SELECT 'asynchronous' WHERE EXISTS (SELECT FROM pg_stat_replication WHERE NOT EXISTS
            (SELECT FROM pg_replication_slots WHERE active_pid = pid AND slot_type = 'logical'))
        AND (current_setting('synchronous_standby_names') = ''
            OR current_setting('synchronous_commit') IN ('off', 'local'))";

/// Returns a query for a text if new rows of a table would get ids that are used. The position of a sequence that was
/// never used is `NULL`.
pub(crate) fn sequence_behind(table: &str) -> String {
    format!(
        "SELECT format('the greatest id of {table} is %s, and the sequence is at %s', greatest, coalesce(position, 0))
        FROM (SELECT max(id) AS greatest, pg_sequence_last_value('{table}_id_seq') AS position FROM {table}) AS ids
        WHERE coalesce(position, 0) < greatest"
    )
}

/// Returns statements that wait for the inserts in flight, hold up others until the end of the transaction, and set the
/// sequence to `greatest` if it is behind. An insert locks the table before it takes an id from the sequence, and until
/// its commit. `nextval` keeps a sequence that was set and not used since from moving backwards.
pub(crate) fn advance_sequence(table: &str, greatest: &str) -> String {
    let sequence = format!("{table}_id_seq");
    format!(
        "LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE;
        SELECT setval('{sequence}', greatest(nextval('{sequence}'), {greatest}))
        WHERE coalesce(pg_sequence_last_value('{sequence}'), 0) < {greatest}"
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

/// Returns a query for the statements that take these permissions on tables from the current user and from the roles
/// that it can become. A permission on one column is one on the whole table here: it suffices to lock rows. Of a user
/// who owns a table, or can become its owner, the query returns what ends that, or [`OWNS_TABLES`] if no other
/// user is the administrator.
pub(crate) fn superfluous_permissions(tables: &[(&str, &str)], has_administrator: bool) -> String {
    let values: Vec<_> = tables
        .iter()
        .map(|(name, permissions)| format!("('{name}', '{permissions}')"))
        .collect();
    let tables = values.join(", ");
    format!(
        "WITH examined AS (
            SELECT relation.oid, relname, relowner, permissions, pg_has_role(relowner, 'MEMBER') AS is_owned
            FROM (VALUES {tables}) AS examined (name, permissions)
                JOIN pg_class AS relation ON relation.oid = to_regclass(name))
        SELECT DISTINCT CASE
            WHEN NOT {has_administrator} THEN '{OWNS_TABLES}'
            WHEN rolsuper THEN format('ALTER ROLE %I NOSUPERUSER', current_user)
            WHEN relowner = pg_roles.oid THEN format('ALTER TABLE %I OWNER TO …', relname)
            ELSE format('REVOKE %I FROM %I', pg_get_userbyid(relowner), current_user) END
        FROM examined JOIN pg_roles ON rolname = current_user
        WHERE is_owned
        UNION ALL
        SELECT format('REVOKE %s ON %I FROM %I', string_agg(DISTINCT permission, ', '), relname, current_user)
        FROM examined JOIN pg_roles ON pg_has_role(pg_roles.oid, 'MEMBER')
            CROSS JOIN unnest(string_to_array(permissions, ', ')) AS permission
        WHERE NOT is_owned AND CASE
            WHEN permission = 'MAINTAIN' AND current_setting('server_version_num')::int < 170000 THEN false
            WHEN permission IN ('INSERT', 'UPDATE', 'REFERENCES')
                THEN has_any_column_privilege(pg_roles.oid, examined.oid, permission)
            ELSE has_table_privilege(pg_roles.oid, examined.oid, permission) END
        GROUP BY relname ORDER BY 1"
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
