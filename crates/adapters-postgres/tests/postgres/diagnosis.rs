//! Each finding about PostgreSQL, with a server or a database that has this one problem.

use std::process::{Command, Stdio};

use animal_store_adapters_postgres::diagnose;
use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Unknown, Warning},
    test_support::{assert_finding, conspicuous},
};

use crate::{
    keys::new_keys,
    migrations::record,
    prelude::*,
    store::{port_of, set},
};

async fn findings(url: &str, settings: &PostgresSettings) -> Vec<Finding> {
    diagnose(&endpoint(url), &endpoint(url), settings, true).await
}

/// Checks a finding about this database, and returns it.
async fn finds(url: &str, subject: &str, verdict: Verdict, text: &str) -> Finding {
    let found = findings(url, &settings()).await;
    assert_finding(&found, subject, verdict, text).clone()
}

/// The statements that a finding advises to run.
fn statements(finding: &Finding) -> &str {
    finding.found.split_once(": ").expect("statements").1
}

/// The subjects whose verdict is not `ok`. A crash of the machine may lose the pets of a test server.
pub(crate) fn problems(found: &[Finding]) -> Vec<&str> {
    let mut subjects = conspicuous(found);
    subjects.retain(|subject| *subject != "postgres.durability");
    subjects
}

/// Tables, rows and positions of sequences.
const CONTENTS: &str =
    "SELECT query_to_xml(format('SELECT * FROM %I', relname), true, true, '')::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') ORDER BY relname";

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = PostgresServer::with(&["fsync=on"]);
    let url = server.url();
    let found = findings(&url, &settings()).await;
    assert_eq!(conspicuous(&found)[0], "postgres.migrations");
    assert_eq!(server.sql(CONTENTS), "");
    migrations(&url).run().await.expect("migrated");
    server.sql("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)");
    let before = server.sql(CONTENTS);
    let found = findings(&url, &settings()).await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 11, "{found:#?}");
    assert_eq!(server.sql(CONTENTS), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_with_which_a_crash_loses_pets_are_found() {
    let server = PostgresServer::with(&["fsync=on"]);
    let url = server.url();
    let subject = "postgres.durability";
    let asynchronous = "ALTER DATABASE postgres SET synchronous_commit = off";
    server.sql(asynchronous);
    finds(&url, subject, Warning, "201").await;
    set(&server, "full_page_writes", "off").await;
    finds(&url, subject, Error, "set full_page_writes = on").await;
    let server = PostgresServer::with(&["fsync=off"]);
    let url = server.url();
    finds(&url, subject, Error, "set fsync = on").await;
}

/// Each connection of the replication protocol counts as a standby.
#[tokio::test(flavor = "multi_thread")]
async fn standbys_for_which_no_commit_waits_are_found() {
    let server = PostgresServer::start();
    let url = server.url();
    let mut standby = Command::new("psql")
        .arg(with_option(&url, "replication=database"))
        .stdin(Stdio::piped())
        .spawn();
    let count = "SELECT count(*) FROM pg_stat_replication";
    let is_connected = async || server.sql(count) == "1";
    wait_until("a standby", is_connected).await;
    let subject = "postgres.replication";
    finds(&url, subject, Warning, "use their ids again").await;
    let local = with_option(&url, "options=-c%20synchronous_commit%3Dlocal");
    set(&server, "synchronous_standby_names", "psql").await;
    finds(&url, subject, Ok, "commits wait for a standby").await;
    finds(&local, subject, Warning, "use their ids again").await;
    standby.as_mut().expect("psql").kill().expect("it runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_newer_and_older_migrations_are_found() {
    let database = PgDatabase::new();
    let url = database.url();
    let subject = "postgres.migrations";
    let found = findings(url, &settings()).await;
    assert_finding(&found, subject, Warning, "are pending: 0001expand");
    let unknown = "run the pending migrations first";
    assert_finding(&found, "postgres.permissions", Unknown, unknown);
    let found = findings(url, &check()).await;
    assert_finding(&found, subject, Error, "run `animal-store migrate` as");

    migrations(url).run().await.expect("migrated");
    for (version, verdict, text) in [
        ("9998expand", Warning, "9998expand"),
        ("9999contract", Error, "9999contract"),
        ("0001_expand_create_pets", Error, "before version 0.1.0"),
    ] {
        record(&database, version);
        finds(url, subject, verdict, text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_migrations_that_the_user_cannot_run_are_an_error() {
    let database = PgDatabase::new();
    let user = user_with(&database, &[]);
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let subject = "postgres.migrations";
    let create = format!(
        "cannot run them: GRANT CREATE ON SCHEMA public TO {}",
        user.name
    );
    finds(&user.url, subject, Error, &create).await;
    let nowhere = with_option(&user.url, "options=-c%20search_path%3Dnowhere");
    finds(&nowhere, subject, Error, "USAGE on a schema").await;
    database.sql(&format!("GRANT CREATE ON SCHEMA public TO {}", user.name));
    finds(&user.url, subject, Warning, "the next start runs them").await;
    database.sql("CREATE TABLE pets ()");
    finds(&user.url, subject, Error, "the owner of the tables is").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_advice_about_missing_permissions_grants_them() {
    let database = migrated().await;
    let user = user_with(&database, &["SELECT ON pets"]);
    let found = findings(&user.url, &settings()).await;
    // What cannot be examined hides nothing else.
    let table = "SELECT ON __diesel_schema_migrations";
    assert_finding(&found, "postgres.migrations", Error, table);
    let advice = "as the owner of the tables";
    let finding = assert_finding(&found, "postgres.permissions", Error, advice);
    let grants = statements(finding);
    assert!(grants.contains("GRANT INSERT ON pets TO "), "{grants}");

    database.sql(&format!("{grants}; GRANT {table} TO {}", user.name));
    let found = findings(&user.url, &settings()).await;
    assert_eq!(problems(&found), [""; 0], "{found:#?}");
    let store = Store::at(&user.url, check()).await;
    store.adds_and_finds().await;
}

/// A permission on one column suffices to lock rows.
#[tokio::test(flavor = "multi_thread")]
async fn permissions_by_which_the_user_can_hold_up_a_revocation_are_found_and_the_advice_revokes_them()
 {
    let database = migrated().await;
    let user = user_with(&database, &[READ]);
    let name = &user.name;
    let subject = "postgres.revocations";
    finds(&user.url, subject, Ok, "cannot hold up").await;
    let is_before_17 = database.sql("SELECT current_setting('server_version_num')::int < 170000");
    for (permission, table) in [
        ("UPDATE", "api_key_state"),
        ("DELETE, INSERT", "api_key_tokens"),
        ("TRIGGER", "api_keys"),
        ("TRUNCATE", "api_key_marks"),
        ("DELETE", "api_key_readings"),
        ("UPDATE", "api_key_changes"),
        ("UPDATE (uses_since)", "api_key_state"),
        ("TRIGGER", "api_key_uses"),
        ("MAINTAIN", "api_keys"),
    ] {
        if permission == "MAINTAIN" && is_before_17 == "t" {
            continue;
        }
        database.sql(&format!("GRANT {permission} ON {table} TO {name}"));
        let permission = permission.trim_end_matches(" (uses_since)");
        let revoke = format!("REVOKE {permission} ON {table}");
        let finding = finds(&user.url, subject, Warning, &revoke).await;
        database.sql(statements(&finding));
        finds(&user.url, subject, Ok, "cannot hold up").await;
    }
}

/// Without another user for the commands, the owner is the only one.
#[tokio::test(flavor = "multi_thread")]
async fn users_who_can_become_an_owner_or_a_writer_of_the_tables_are_found() {
    let server = PostgresServer::start();
    let superuser = server.url();
    migrations(&superuser).run().await.expect("migrated");
    server.sql(
        "CREATE ROLE owner LOGIN; CREATE ROLE member LOGIN NOINHERIT IN ROLE owner; CREATE ROLE other LOGIN;
        CREATE ROLE writer; CREATE ROLE other_member LOGIN NOINHERIT IN ROLE writer;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO owner, member, other;
        GRANT UPDATE ON api_key_tokens TO writer;
        ALTER TABLE api_keys OWNER TO owner; ALTER TABLE api_key_state OWNER TO owner",
    );
    let place = superuser.split_once('@').expect("a user").1;
    let url = |name| endpoint(&format!("postgres://{name}@{place}"));
    for (user, administrator, verdict, text) in [
        (
            url("member"),
            url("other"),
            Warning,
            "revocations of API keys: REVOKE owner FROM member",
        ),
        (
            url("owner"),
            url("other"),
            Warning,
            "ALTER TABLE api_key_state OWNER TO",
        ),
        (endpoint(&superuser), url("owner"), Warning, "NOSUPERUSER"),
        (
            url("other_member"),
            url("owner"),
            Warning,
            "REVOKE UPDATE ON api_key_tokens FROM",
        ),
        (url("other"), url("owner"), Ok, "cannot hold up"),
        (url("owner"), url("owner"), Ok, "permissions of the owner"),
        (url("member"), url("member"), Ok, "permissions of the owner"),
    ] {
        let found = diagnose(&user, &administrator, &settings(), true).await;
        assert_finding(&found, "postgres.revocations", verdict, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_usable_connection_there_is_no_other_finding() {
    let database = PgDatabase::encoded("LATIN1");
    for (url, text) in [
        (database.url(), "WITH ENCODING 'UTF8'"),
        ("postgres://shop@127.0.0.1:1/store", "runs"),
    ] {
        let found = findings(url, &settings()).await;
        assert_finding(&found, "postgres.connection", Error, text);
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let database = migrated().await;
    let (proxy, url) = proxy_to(database.url());
    proxy.hold("synchronous_commit");
    let found = findings(&url, &few_seconds()).await;
    assert_finding(&found, "postgres.durability", Error, "no response in time");
    assert_finding(&found, "postgres.migrations", Ok, "none is pending");
    let last = found.last().expect("a finding");
    assert_eq!(last.subject, "postgres.durability", "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_pooler_that_the_configuration_does_not_name_is_found() {
    let database = migrated().await;
    let direct = endpoint(database.url());
    for (mode, pool_size, verdict, text) in [
        ("transaction", 1, Error, "transaction_pooling = true"),
        ("transaction", 5, Error, "transaction_pooling = true"),
        ("session", 5, Ok, "its own server process"),
    ] {
        let bouncer = PgBouncer::start(port_of(database.url()), mode, pool_size);
        let through = endpoint(&bouncer.url(database.name()));
        let found = diagnose(&through, &direct, &settings(), true).await;
        assert_finding(&found, "postgres.pooler", verdict, text);
    }
}

/// By the owner without `FORCE`, and by a role with `BYPASSRLS`, every row is read.
#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_policies_apply_to_the_user_are_found() {
    let database = migrated().await;
    let user = user_with(&database, &ALL);
    let name = &user.name;
    let subject = "postgres.row_security";
    database.sql("ALTER TABLE pets ENABLE ROW LEVEL SECURITY");
    database.sql("ALTER TABLE api_key_tokens ENABLE ROW LEVEL SECURITY");
    finds(&user.url, subject, Error, "pets, api_key_tokens").await;
    finds(database.url(), subject, Ok, "no policy").await;
    database.sql(&format!("ALTER ROLE {name} BYPASSRLS"));
    finds(&user.url, subject, Ok, "no policy").await;
    database.sql(&format!(
        "ALTER ROLE {name} NOBYPASSRLS; GRANT CREATE ON SCHEMA public TO {name};
        ALTER TABLE pets OWNER TO {name}; ALTER TABLE api_key_tokens DISABLE ROW LEVEL SECURITY"
    ));
    finds(&user.url, subject, Ok, "no policy").await;
    database.sql("ALTER TABLE pets FORCE ROW LEVEL SECURITY");
    finds(&user.url, subject, Error, "policies apply to pets:").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_behind_the_greatest_id_is_found_and_the_advice_sets_it() {
    let database = migrated().await;
    let url = database.url();
    let subject = "postgres.sequence";
    finds(url, subject, Ok, "none").await;
    database.sql("INSERT INTO pets (id, name, category_id) VALUES (7, 'Rex', 1)");
    let behind = "the greatest id of pets is 7, and the sequence is at 0";
    let finding = finds(url, subject, Error, behind).await;
    let advice = finding.advice.as_deref().expect("advice");
    let statement = advice.split_once("is added: ").expect("a statement").1;
    let statement = statement.split_once(", and").expect("its end").0;
    assert_eq!(database.sql(statement), "7");
    finds(url, subject, Ok, "none").await;
    database.sql("ALTER SEQUENCE pets_id_seq CACHE 50");
    let advice = "ALTER SEQUENCE pets_id_seq CACHE 1";
    finds(url, subject, Error, advice).await;
}

/// The user of the instances may not read this sequence, and that of commands may.
#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_behind_the_changes_of_keys_is_found_for_the_user_of_commands() {
    let (keys, database) = new_keys().await;
    keys.add(&["a"]).await;
    database.sql("ALTER SEQUENCE api_key_changes_id_seq RESTART");
    let user = user_with(&database, &[READ]);
    let user = endpoint(&user.url);
    let direct = endpoint(database.url());
    let found = diagnose(&user, &direct, &settings(), true).await;
    let behind = "the greatest id of api_key_changes is 1";
    assert_finding(&found, "postgres.sequence", Error, behind);
    let found = diagnose(&user, &user, &settings(), true).await;
    assert_finding(&found, "postgres.sequence", Ok, "the user may read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_writes_is_found() {
    let database = migrated().await;
    let read_only = "options=-c%20default_transaction_read_only%3Don";
    let url = with_option(database.url(), read_only);
    finds(&url, "postgres.role", Error, "read-only").await;
}
