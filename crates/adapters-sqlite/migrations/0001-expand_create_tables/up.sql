CREATE TABLE pets (
    -- AUTOINCREMENT: an id is never used again, even if its row was deleted.
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL,
    category_id INTEGER NOT NULL,
    -- 1 available, 2 pending, 3 sold; NULL if none was given.
    status      INTEGER NULL CHECK (status IN (1, 2, 3)),
    -- In microseconds since 1970.
    created_at  INTEGER NOT NULL
) STRICT;

-- A page of one status is a range of this index, which has all its columns: a lookup of each row would take as long
-- again. A page of all pets is a range of the table.
CREATE INDEX pets_status_id ON pets (status, id, name, category_id);

-- Nothing refers to `pets`: a record outlives its pet.
CREATE TABLE idempotency_keys (
    api_key_id TEXT    NOT NULL,
    -- SHA-256 of the client's text.
    key_digest BLOB    NOT NULL,
    -- SHA-256 of the pet.
    pet_digest BLOB    NOT NULL,
    pet_id     INTEGER NOT NULL,
    -- In milliseconds since 1970.
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (api_key_id, key_digest)
) STRICT, WITHOUT ROWID;

-- For the sweep.
CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);

-- A key without valid tokens does not exist. The row of a revoked key stays, so that directories see the change.
CREATE TABLE api_keys (
    id      TEXT    NOT NULL PRIMARY KEY,
    label   TEXT    NOT NULL,
    -- `read`, `write` or `read,write`.
    scopes  TEXT    NOT NULL,
    -- The version of `api_key_state` after the last change of the key.
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For directories, which read the keys that have changed.
CREATE INDEX api_keys_version ON api_keys (version);

CREATE TABLE api_key_tokens (
    -- SHA-256 of the token.
    digest     BLOB    NOT NULL PRIMARY KEY,
    api_key_id TEXT    NOT NULL REFERENCES api_keys (id),
    last_four  TEXT    NOT NULL,
    -- In milliseconds since 1970.
    created_at INTEGER NOT NULL,
    -- In milliseconds since 1970; NULL: never.
    expires_at INTEGER NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX api_key_tokens_api_key_id ON api_key_tokens (api_key_id);

-- One row.
CREATE TABLE api_key_state (
    id         INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    -- Each change of an API key increases it: a directory compares it with the version that it has read.
    version    INTEGER NOT NULL,
    -- When the record of uses began, a whole minute, in seconds since 1970; NULL: no use was recorded.
    uses_since INTEGER NULL
) STRICT;

INSERT INTO api_key_state (id, version) VALUES (1, 0);

CREATE TABLE api_key_uses (
    api_key_id   TEXT    NOT NULL REFERENCES api_keys (id),
    -- 0 any request, 1 getPet.
    kind         INTEGER NOT NULL,
    -- A whole minute, in seconds since 1970.
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (api_key_id, kind)
) STRICT, WITHOUT ROWID;
