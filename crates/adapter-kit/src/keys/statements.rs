//! The statements on the tables of API keys. Each is one of SQLite and of PostgreSQL.
//!
//! | table | rows |
//! |---|---|
//! | `api_keys` | each key that was ever added: its label, its scopes, and the version after its last change |
//! | `api_key_tokens` | the tokens of the keys, by their digests; some have expired |
//! | `api_key_state` | one: the version, the mark and the numbers of rows after the last change |
//! | `api_key_marks` | the marks of the last changes, by their versions |
//! | `api_key_readings` | the clock at some of the last changes: see `ClockReadings` |
//! | `api_key_uses` | the last use of each kind of a key |
//! | `api_key_uses_since` | at most one: when the record of uses began; older programs write it to `api_key_state` |
//! | `api_key_changes` | the audit log |
//!
//! Times are in milliseconds since 1970, those of uses in seconds.

pub(super) const SELECT_VERSION: &str = "SELECT version FROM api_key_state";

/// Selects the columns of a `KeyState`. After a change by an older program, the rows are counted.
pub const SELECT_STATE: &str = "
    SELECT version, mark,
        CASE WHEN marked_version = version THEN keys ELSE (SELECT count(*) FROM api_keys) END AS keys,
        CASE WHEN marked_version = version THEN tokens ELSE (SELECT count(*) FROM api_key_tokens) END AS tokens
    FROM api_key_state";

/// Counts the marks of the versions after `$1`, and that of `$1` if it is `$2`.
pub(super) const COUNT_MARKS: &str =
    "SELECT count(*) FROM api_key_marks WHERE version > $1 OR version = $1 AND mark = $2";

/// Selects the keys that have changed since a version, also those without tokens.
pub(super) const SELECT_CHANGED: &str = "
    SELECT id, label, scopes, digest, expires_at
    FROM api_keys LEFT JOIN api_key_tokens ON api_key_id = id
    WHERE version > $1
    ORDER BY id, created_at, digest";

/// Selects the keys that exist at a time.
pub(super) const SELECT_VALID: &str = "
    SELECT id, label, scopes, digest, last_four, created_at, expires_at
    FROM api_keys JOIN api_key_tokens ON api_key_id = id
    WHERE expires_at IS NULL OR expires_at > $1
    ORDER BY id, created_at, digest";

/// Selects the key with an id, if it exists at a time.
pub(super) const SELECT_BY_ID: &str = "
    SELECT id, label, scopes, digest, last_four, created_at, expires_at
    FROM api_keys JOIN api_key_tokens ON api_key_id = id
    WHERE (expires_at IS NULL OR expires_at > $1) AND id = $2
    ORDER BY created_at, digest";

/// Selects the key of a token that is valid at a time.
pub(super) const SELECT_OWNER: &str = "
    SELECT id, label, scopes
    FROM api_keys JOIN api_key_tokens ON api_key_id = id
    WHERE (expires_at IS NULL OR expires_at > $1) AND digest = $2";

pub(super) const TOUCH_KEY: &str = "UPDATE api_keys SET version = $2 WHERE id = $1";

pub(super) const UPDATE_KEY: &str =
    "UPDATE api_keys SET version = $2, label = $3, scopes = $4 WHERE id = $1 RETURNING id";

pub(super) const INSERT_KEY: &str =
    "INSERT INTO api_keys (id, version, label, scopes) VALUES ($1, $2, $3, $4)";

/// Deletes the tokens of a key that expire after a time.
pub(super) const DELETE_TOKENS: &str = "
    DELETE FROM api_key_tokens WHERE api_key_id = $1 AND (expires_at IS NULL OR expires_at > $2)
    RETURNING digest";

pub(super) const DELETE_TOKEN: &str =
    "DELETE FROM api_key_tokens WHERE digest = $1 RETURNING digest";

pub(super) const INSERT_TOKEN: &str = "
    INSERT INTO api_key_tokens (api_key_id, digest, last_four, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5)";

pub(super) const DELETE_EXPIRED: &str =
    "DELETE FROM api_key_tokens WHERE expires_at <= $1 RETURNING digest";

/// Writes the version and the mark, and by how much the numbers of keys and tokens have grown.
pub(super) const WRITE_STATE: &str = "
    UPDATE api_key_state SET version = $1, mark = $2, marked_version = $1,
        keys = CASE WHEN marked_version = version THEN keys + $3 ELSE (SELECT count(*) FROM api_keys) END,
        tokens = CASE WHEN marked_version = version THEN tokens + $4 ELSE (SELECT count(*) FROM api_key_tokens) END";

pub(super) const WRITE_MARK: &str = "
    INSERT INTO api_key_marks (version, mark) VALUES ($1, $2)
    ON CONFLICT (version) DO UPDATE SET mark = excluded.mark";

/// Deletes the marks of a later history, and all up to a version.
pub(super) const DELETE_MARKS: &str =
    "DELETE FROM api_key_marks WHERE version > $1 OR version <= $2";

pub(super) const DELETE_USES: &str = "DELETE FROM api_key_uses WHERE api_key_id = $1";

pub(super) const BEGIN_USES: &str =
    "INSERT INTO api_key_uses_since (id, since) VALUES (1, $1) ON CONFLICT DO NOTHING";

pub(super) const SELECT_USES_SINCE: &str = "
    SELECT min(since)
    FROM (SELECT since FROM api_key_uses_since UNION ALL SELECT uses_since FROM api_key_state) AS beginnings";

/// Selects the uses of the keys that exist at a time.
pub(super) const SELECT_USES: &str = "
    SELECT api_key_id, kind, last_used_at
    FROM api_key_uses
    WHERE EXISTS (SELECT 1 FROM api_key_tokens AS token
        WHERE token.api_key_id = api_key_uses.api_key_id AND (expires_at IS NULL OR expires_at > $1))";

/// Writes uses of the kind `$1` of the keys that have tokens. `rows`: an id and a time for each. No time moves
/// backwards. All instances lock the rows in the same order.
pub(super) fn write_uses(rows: &str) -> String {
    format!(
        "INSERT INTO api_key_uses (api_key_id, kind, last_used_at)
        SELECT column1, $1, column2 FROM (VALUES {rows}) AS given
        WHERE EXISTS (SELECT 1 FROM api_key_tokens WHERE api_key_id = column1)
        ORDER BY column1
        ON CONFLICT (api_key_id, kind) DO UPDATE SET last_used_at = excluded.last_used_at
        WHERE api_key_uses.last_used_at < excluded.last_used_at"
    )
}

pub(super) const SELECT_AUDIT_LOG: &str = "
    SELECT at, changed_by, change, api_key_id, label, scopes, expires_at, old_token_ends
    FROM api_key_changes WHERE at >= $1
    ORDER BY at, id";

pub(super) const APPEND_AUDIT: &str = "
    INSERT INTO api_key_changes (at, changed_by, change, api_key_id, label, scopes, expires_at, old_token_ends)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Deletes the entries before a time, and all but the last ones, whose number is `$2`.
pub(super) const PRUNE_AUDIT_LOG: &str = "
    DELETE FROM api_key_changes WHERE at < $1 OR id IN
        (SELECT id FROM api_key_changes ORDER BY at DESC, id DESC LIMIT 9223372036854775807 OFFSET $2)";
