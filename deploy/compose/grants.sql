-- The user of the instances, with the permissions of docs/operations/postgresql.md, "Users of PostgreSQL". Runs after each
-- migration; a second run changes nothing.
\set password `cat /run/secrets/postgres_store_password`
SELECT 'CREATE ROLE store LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'store') \gexec
ALTER ROLE store PASSWORD :'password';
GRANT SELECT, INSERT ON pets TO store;
GRANT USAGE ON SEQUENCE pets_id_seq TO store;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO store;
GRANT SELECT, INSERT, DELETE ON idempotency_readings TO store;
GRANT SELECT ON __diesel_schema_migrations TO store;
