-- Random bytes of the last change that has some. A change by a program that does not know these columns changes the
-- version only.
ALTER TABLE api_key_state ADD COLUMN mark BLOB NOT NULL DEFAULT x'';
-- The version after that change.
ALTER TABLE api_key_state ADD COLUMN marked_version INTEGER NOT NULL DEFAULT -1;
-- The numbers of rows after that change.
ALTER TABLE api_key_state ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_key_state ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

-- The marks of the last changes. A directory that knows one of these states reads the changes since then only.
CREATE TABLE api_key_marks (
    version INTEGER NOT NULL PRIMARY KEY,
    mark    BLOB    NOT NULL
) STRICT;

UPDATE api_key_state SET
    mark = randomblob(16),
    marked_version = version,
    keys = (SELECT count(*) FROM api_keys),
    tokens = (SELECT count(*) FROM api_key_tokens);

INSERT INTO api_key_marks (version, mark) SELECT version, mark FROM api_key_state;

-- At most one row.
CREATE TABLE api_key_uses_since (
    id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    -- As `api_key_state.uses_since`, which older programs write. The earlier one counts.
    since INTEGER NOT NULL
) STRICT;

-- The clock at some of the last changes of API keys, in milliseconds since 1970.
CREATE TABLE api_key_readings (
    at INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- The clock at some of the last sweeps of idempotency keys, in milliseconds since 1970.
CREATE TABLE idempotency_readings (
    at INTEGER NOT NULL PRIMARY KEY
) STRICT;
