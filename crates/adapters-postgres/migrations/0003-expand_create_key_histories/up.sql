-- A change by a program that does not know these columns changes the version only.
ALTER TABLE api_key_state
    -- Random bytes of the last change that has some.
    ADD COLUMN mark           bytea  NOT NULL DEFAULT '',
    -- The version after that change.
    ADD COLUMN marked_version bigint NOT NULL DEFAULT -1,
    -- The numbers of rows after that change.
    ADD COLUMN keys           bigint NOT NULL DEFAULT 0,
    ADD COLUMN tokens         bigint NOT NULL DEFAULT 0;

-- The marks of the last changes. A directory that knows one of these states reads the changes since then only.
CREATE TABLE api_key_marks (
    version bigint PRIMARY KEY,
    mark    bytea  NOT NULL
);

UPDATE api_key_state SET
    -- A server with FIPS has no md5(), and PostgreSQL 12 no gen_random_uuid().
    mark = substring(sha256(convert_to(random()::text || random()::text || clock_timestamp()::text, 'UTF8')) FOR 16),
    marked_version = version,
    keys = (SELECT count(*) FROM api_keys),
    tokens = (SELECT count(*) FROM api_key_tokens);

INSERT INTO api_key_marks (version, mark) SELECT version, mark FROM api_key_state;

-- At most one row. A change of an API key locks `api_key_state`, and waits for nothing that instances write.
CREATE TABLE api_key_uses_since (
    id    smallint PRIMARY KEY CHECK (id = 1),
    -- As `api_key_state.uses_since`, which instances of older programs write. The earlier one counts.
    since bigint   NOT NULL
);

-- The clock at some of the last changes of API keys, in milliseconds since 1970.
CREATE TABLE api_key_readings (
    at bigint PRIMARY KEY
);

-- The clock at some of the last sweeps of idempotency keys, in milliseconds since 1970.
CREATE TABLE idempotency_readings (
    at bigint PRIMARY KEY
);
