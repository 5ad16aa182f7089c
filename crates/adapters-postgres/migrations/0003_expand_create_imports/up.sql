-- The progress of imports.
CREATE TABLE imports (
    -- SHA-256 of the beginning of the file.
    source   bytea   NOT NULL PRIMARY KEY,
    -- Number of lines that are done.
    lines    bigint  NOT NULL,
    -- SHA-256 of these lines.
    digest   bytea   NOT NULL,
    -- Whether the file has no other lines.
    finished boolean NOT NULL
);
