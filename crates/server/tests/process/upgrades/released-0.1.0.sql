-- A file that release 0.1.0 wrote, as sqlite3 dumps it: `before` is the text of the idempotency key. It is from 2024, and
-- the idempotency key does not expire.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE __diesel_schema_migrations (
       version VARCHAR(50) PRIMARY KEY NOT NULL,
       run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO __diesel_schema_migrations VALUES('0001expand','2024-11-28 09:03:30');
INSERT INTO __diesel_schema_migrations VALUES('0002expand','2024-11-28 09:03:30');
INSERT INTO __diesel_schema_migrations VALUES('0003expand','2024-11-28 09:03:30');
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
INSERT INTO pets VALUES(1,'Bella',1,NULL,1732784612750702);
INSERT INTO pets VALUES(2,'Rex é',-9223372036854775808,1,1732784612795753);
INSERT INTO pets VALUES(3,'Luna',9223372036854775807,2,1732784612839795);
INSERT INTO pets VALUES(4,'Tom',2,3,1732784612892568);
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
INSERT INTO idempotency_keys VALUES('FyVvxgIN1LT',X'6db7d803e74f1ffa7d8f5adc0bf95b3e15bf4c8373fffadf546227cc6c6742cb',X'dde4a41bac4ffdd45369adc32c90d742d5a6874e0b0e5ce16f148daead33da39',1,9999999999999);
CREATE TABLE api_keys (
    id      TEXT    NOT NULL PRIMARY KEY,
    label   TEXT    NOT NULL,
    -- `read`, `write` or `read,write`.
    scopes  TEXT    NOT NULL,
    -- The version of `api_key_state` after the last change of the key.
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO api_keys VALUES('Cu0MxyU57k0','old shop','read,write',3);
INSERT INTO api_keys VALUES('FyVvxgIN1LT','web shop','read,write',1);
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
INSERT INTO api_key_tokens VALUES(X'ace4312a133f6089ed5fc3bee99c70a698b05371c448d029ce34b8a344949021','FyVvxgIN1LT','l7Iq',1732784610544,NULL);
CREATE TABLE api_key_state (
    id         INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    -- Each change of an API key increases it: a directory compares it with the version that it has read.
    version    INTEGER NOT NULL,
    -- When the record of uses began, a whole minute, in seconds since 1970; NULL: no use was recorded.
    uses_since INTEGER NULL
, mark BLOB NOT NULL DEFAULT x'', marked_version INTEGER NOT NULL DEFAULT -1, keys INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO api_key_state VALUES(1,3,NULL,X'81ed0ddda958eca3a63fa01d0bce4c78',3,2,1);
CREATE TABLE api_key_uses (
    api_key_id   TEXT    NOT NULL REFERENCES api_keys (id),
    -- 0 any request, 1 getPet.
    kind         INTEGER NOT NULL,
    -- A whole minute, in seconds since 1970.
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (api_key_id, kind)
) STRICT, WITHOUT ROWID;
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
INSERT INTO api_key_changes VALUES(1,1732784610544,'shop@server','create','FyVvxgIN1LT','web shop','read,write',NULL,NULL);
INSERT INTO api_key_changes VALUES(2,1732784612959,'shop@server','create','Cu0MxyU57k0','old shop','read,write',NULL,NULL);
INSERT INTO api_key_changes VALUES(3,1732784614807,'shop@server','revoke','Cu0MxyU57k0','old shop','read,write',NULL,NULL);
CREATE TABLE api_key_marks (
    version INTEGER NOT NULL PRIMARY KEY,
    mark    BLOB    NOT NULL
) STRICT;
INSERT INTO api_key_marks VALUES(0,X'133052136123a897994e05a74c10ef66');
INSERT INTO api_key_marks VALUES(1,X'710bc0ebdeaa630b5d1ea8d2460aac1f');
INSERT INTO api_key_marks VALUES(2,X'bbc64a7fe27f2aa6fcfc23daa50978b5');
INSERT INTO api_key_marks VALUES(3,X'81ed0ddda958eca3a63fa01d0bce4c78');
CREATE TABLE api_key_uses_since (
    id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    -- As `api_key_state.uses_since`, which older programs write. The earlier one counts.
    since INTEGER NOT NULL
) STRICT;
CREATE TABLE api_key_readings (
    at INTEGER NOT NULL PRIMARY KEY
) STRICT;
INSERT INTO api_key_readings VALUES(1732784610544);
INSERT INTO api_key_readings VALUES(1732784614807);
CREATE TABLE idempotency_readings (
    at INTEGER NOT NULL PRIMARY KEY
) STRICT;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('pets',4);
CREATE INDEX pets_status_id ON pets (status, id, name, category_id);
CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);
CREATE INDEX api_keys_version ON api_keys (version);
CREATE INDEX api_key_tokens_api_key_id ON api_key_tokens (api_key_id);
CREATE INDEX api_key_changes_at ON api_key_changes (at, id);
COMMIT;
PRAGMA application_id = 1634628468;
PRAGMA user_version = 760077938;
