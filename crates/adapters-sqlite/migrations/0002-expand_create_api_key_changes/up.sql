-- The recorded changes of API keys. Their rows refer to none: they outlive the keys.
CREATE TABLE api_key_changes (
    id             INTEGER NOT NULL PRIMARY KEY,
    -- In milliseconds since 1970, as the other times.
    at             INTEGER NOT NULL,
    -- The user and the machine.
    changed_by     TEXT    NOT NULL,
    -- `create`, `rotate` or `revoke`.
    change         TEXT    NOT NULL,
    api_key_id     TEXT    NOT NULL,
    label          TEXT    NOT NULL,
    scopes         TEXT    NOT NULL,
    -- NULL: the new token does not expire, or there is none.
    expires_at     INTEGER NULL,
    -- After a rotation.
    old_token_ends INTEGER NULL
) STRICT;

CREATE INDEX api_key_changes_at ON api_key_changes (at, id);
