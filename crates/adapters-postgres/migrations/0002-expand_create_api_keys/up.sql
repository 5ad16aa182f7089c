-- A key without valid tokens does not exist. The row of a revoked key stays, so that directories see the change.
CREATE TABLE api_keys (
    id      text COLLATE "C" PRIMARY KEY,
    label   text             NOT NULL,
    -- `read`, `write` or `read,write`.
    scopes  text             NOT NULL,
    -- The version of `api_key_state` after the last change of the key.
    version bigint           NOT NULL
);

-- For directories, which read the keys that have changed.
CREATE INDEX api_keys_version ON api_keys (version);

CREATE TABLE api_key_tokens (
    -- SHA-256 of the token.
    digest     bytea            PRIMARY KEY,
    api_key_id text COLLATE "C" NOT NULL REFERENCES api_keys (id),
    last_four  text             NOT NULL,
    -- In milliseconds since 1970.
    created_at bigint           NOT NULL,
    -- In milliseconds since 1970. NULL: the token does not expire.
    expires_at bigint           NULL
);

CREATE INDEX api_key_tokens_api_key_id ON api_key_tokens (api_key_id);

-- Each change deletes expired tokens.
CREATE INDEX api_key_tokens_expires_at ON api_key_tokens (expires_at) WHERE expires_at IS NOT NULL;

-- One row. Each change of an API key locks it, so versions become visible in their order.
CREATE TABLE api_key_state (
    id         smallint PRIMARY KEY CHECK (id = 1),
    -- Each change of an API key increases it: a directory compares it with the version that it has read.
    version    bigint   NOT NULL,
    -- When the record of uses began, a whole minute, in seconds since 1970. NULL: no use was recorded.
    uses_since bigint   NULL
);

INSERT INTO api_key_state (id, version) VALUES (1, 0);

CREATE TABLE api_key_uses (
    api_key_id   text COLLATE "C" NOT NULL REFERENCES api_keys (id),
    -- 0 any request, 1 getPet.
    kind         smallint         NOT NULL,
    -- A whole minute, in seconds since 1970.
    last_used_at bigint           NOT NULL,
    PRIMARY KEY (api_key_id, kind)
);
