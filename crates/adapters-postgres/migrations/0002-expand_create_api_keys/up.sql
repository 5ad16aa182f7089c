-- A key without valid tokens does not exist. The row of a revoked key stays, so that directories see the change.
CREATE TABLE api_keys (
    id      text COLLATE "C" PRIMARY KEY,
    label   text             NOT NULL,
    -- `read`, `write` or `read,write`.
    scopes  text             NOT NULL,
    -- The version of `api_key_state` after the last change of the key. No change concerns two keys.
    version bigint           NOT NULL
);

-- Directories read the keys that have changed, in this order.
CREATE UNIQUE INDEX api_keys_version ON api_keys (version);

CREATE TABLE api_key_tokens (
    -- SHA-256 of the token.
    digest     bytea            PRIMARY KEY,
    api_key_id text COLLATE "C" NOT NULL REFERENCES api_keys (id),
    last_four  text             NOT NULL,
    created_at timestamptz      NOT NULL,
    -- NULL: never.
    expires_at timestamptz      NULL
);

CREATE INDEX api_key_tokens_api_key_id ON api_key_tokens (api_key_id);

-- Each change deletes expired tokens.
CREATE INDEX api_key_tokens_expires_at ON api_key_tokens (expires_at) WHERE expires_at IS NOT NULL;

-- One row.
CREATE TABLE api_key_state (
    id      boolean PRIMARY KEY DEFAULT true CHECK (id),
    -- Each change of an API key increases it, and holds the lock of the row until its commit. So versions become visible
    -- in their order: a reader that sees a version sees every change up to it.
    version bigint  NOT NULL
);

INSERT INTO api_key_state (version) VALUES (0);

-- Last uses, which instances write once a minute. A foreign key would lock the rows of the keys.
CREATE TABLE api_key_uses (
    api_key_id   text COLLATE "C" NOT NULL,
    -- 0 any request, 1 getPet.
    kind         smallint         NOT NULL,
    -- A whole minute.
    last_used_at timestamptz      NOT NULL,
    PRIMARY KEY (api_key_id, kind)
);

-- At most one row: none until a use is recorded.
CREATE TABLE api_key_use_record (
    id    boolean     PRIMARY KEY DEFAULT true CHECK (id),
    -- When the record of uses began, a whole minute.
    since timestamptz NOT NULL
);
