-- What has to be known to answer a create again. Nothing refers to `pets`: an animal may go, its answer was given.
CREATE TABLE idempotency_keys (
    api_key_id text COLLATE "C" NOT NULL,
    -- SHA-256 of what the client called its create.
    key_digest bytea            NOT NULL,
    -- SHA-256 of the animal as the program sees it: two creates are about the same one where this is the same.
    pet_digest bytea            NOT NULL,
    pet_id     bigint           NOT NULL,
    expires_at timestamptz      NOT NULL,
    PRIMARY KEY (api_key_id, key_digest)
);

-- For the sweep.
CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);
