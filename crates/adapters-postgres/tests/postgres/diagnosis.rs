//! Each finding about PostgreSQL, with a server or a database that has this one problem.

use std::process::{Command, Stdio};

use animal_store_adapters_postgres::{PostgresSettings, SchemaMode, diagnose};
use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Unknown, Warning},
    test_support::{assert_finding, conspicuous},
};
use animal_store_test_servers::{PgBouncer, PgDatabase, PostgresServer};

use crate::{
    explain::empty_tables,
    outcomes::{adds_and_finds, wait_until},
    pooler::{Pooled, pooling},
    store::{Store, endpoint, migrations, proxy_to, settings, short_timeout, with_option},
};

async fn findings(url: &str, settings: &PostgresSettings) -> Vec<Finding> {
    diagnose(&endpoint(url), &endpoint(url), settings, true).await
}

/// Checks a finding about this database.
async fn finds(url: &str, subject: &str, verdict: Verdict, text: &str) {
    assert_finding(&findings(url, &settings()).await, subject, verdict, text);
}

/// Tables, rows and positions of sequences.
fn contents(server: &PostgresServer) -> String {
    server.sql(
        "postgres",
        "SELECT query_to_xml(format('SELECT * FROM %I', relname), true, true, '')::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') ORDER BY relname",
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = PostgresServer::with(&["fsync=on"]);
    let url = server.url("postgres");
    assert_eq!(
        conspicuous(&findings(&url, &settings()).await)[0],
        "postgres.migrations"
    );
    assert_eq!(contents(&server), "");

    migrations(&url).run().await.expect("migrated");
    server.sql(
        "postgres",
        "INSERT INTO pets (name, category_id) VALUES ('Rex', 1)",
    );
    let before = contents(&server);
    let found = findings(&url, &settings()).await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 11, "{found:#?}");
    assert_eq!(contents(&server), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_with_which_a_crash_loses_pets_are_found() {
    let server = PostgresServer::with(&["fsync=on"]);
    let url = server.url("postgres");
    server.sql(
        "postgres",
        "ALTER DATABASE postgres SET synchronous_commit = off",
    );
    finds(&url, "postgres.durability", Warning, "201").await;
    server.sql("postgres", "ALTER SYSTEM SET full_page_writes = off");
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the server has the setting", async || {
        server.sql("postgres", "SHOW full_page_writes") == "off"
    })
    .await;
    finds(
        &url,
        "postgres.durability",
        Error,
        "set full_page_writes = on",
    )
    .await;
}

/// Each connection of the replication protocol counts as a standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standbys_for_which_no_commit_waits_are_found() {
    let server = PostgresServer::start();
    let url = server.url("postgres");
    let mut standby = Command::new("psql")
        .arg(with_option(&url, "replication=database"))
        .stdin(Stdio::piped())
        .spawn();
    let is_connected = "SELECT count(*) = 1 FROM pg_stat_replication";
    wait_until("a standby", async || {
        server.sql("postgres", is_connected) == "t"
    })
    .await;
    finds(&url, "postgres.replication", Warning, "use their ids again").await;
    let local = with_option(&url, "options=-c%20synchronous_commit%3Dlocal");
    server.sql(
        "postgres",
        "ALTER SYSTEM SET synchronous_standby_names = 'psql'",
    );
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the setting", async || {
        server.sql("postgres", "SHOW synchronous_standby_names") == "psql"
    })
    .await;
    finds(
        &url,
        "postgres.replication",
        Ok,
        "commits wait for a standby",
    )
    .await;
    finds(
        &local,
        "postgres.replication",
        Warning,
        "use their ids again",
    )
    .await;
    standby.as_mut().expect("psql").kill().expect("it runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_newer_and_older_migrations_are_found() {
    let database = PgDatabase::new();
    let found = findings(database.url(), &settings()).await;
    assert_finding(
        &found,
        "postgres.migrations",
        Warning,
        "these migrations are pending: 0001expand",
    );
    assert_finding(
        &found,
        "postgres.permissions",
        Unknown,
        "run the pending migrations first",
    );
    let check = PostgresSettings {
        schema: SchemaMode::Check,
        ..settings()
    };
    assert_finding(
        &findings(database.url(), &check).await,
        "postgres.migrations",
        Error,
        "run `animal-store migrate` as the owner",
    );

    migrations(database.url()).run().await.expect("migrated");
    for (version, verdict, text) in [
        ("9998expand", Warning, "9998expand"),
        ("9999contract", Error, "9999contract"),
        (
            "0001_expand_create_pets",
            Error,
            "from before version 0.1.0",
        ),
    ] {
        database.sql(&format!(
            "INSERT INTO __diesel_schema_migrations (version) VALUES ('{version}')"
        ));
        finds(database.url(), "postgres.migrations", verdict, text).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_advice_about_missing_permissions_grants_them() {
    let database = empty_tables().await;
    let user = database.user();
    database.sql(&format!("GRANT SELECT ON pets TO {}", user.name));
    let found = findings(&user.url, &settings()).await;
    // What cannot be examined hides nothing else.
    assert_finding(
        &found,
        "postgres.migrations",
        Error,
        "SELECT ON __diesel_schema_migrations",
    );
    let finding = assert_finding(
        &found,
        "postgres.permissions",
        Error,
        "as the owner of the tables",
    );

    let grants = finding.found.split_once(": ").expect("statements").1;
    assert!(
        grants.contains("GRANT INSERT ON pets TO ") && grants.contains("ON SEQUENCE pets_id_seq"),
        "{grants}"
    );
    database.sql(&format!(
        "{grants}; GRANT SELECT ON __diesel_schema_migrations TO {}",
        user.name
    ));
    let found = findings(&user.url, &settings()).await;
    // The test server is not durable.
    assert!(
        conspicuous(&found)
            .iter()
            .all(|&subject| subject == "postgres.durability"),
        "{found:#?}"
    );
    let store = Store::at(
        &user.url,
        PostgresSettings {
            schema: SchemaMode::Check,
            ..settings()
        },
    )
    .await;
    adds_and_finds(&store.repository).await;
}

/// A permission on one column suffices to lock rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_by_which_the_user_can_hold_up_a_revocation_are_found_and_the_advice_revokes_them()
 {
    let database = empty_tables().await;
    let user = database.user();
    let subject = "postgres.revocations";
    database.sql(&format!(
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
        user.name
    ));
    finds(&user.url, subject, Ok, "cannot hold up").await;
    for (granted, revoked) in [
        ("UPDATE ON api_key_state", "REVOKE UPDATE ON api_key_state"),
        (
            "UPDATE (uses_since) ON api_key_state",
            "REVOKE UPDATE ON api_key_state",
        ),
        (
            "INSERT, DELETE ON api_key_tokens",
            "REVOKE DELETE, INSERT ON api_key_tokens",
        ),
        ("TRIGGER ON api_keys", "REVOKE TRIGGER ON api_keys"),
        (
            "TRUNCATE ON api_key_marks",
            "REVOKE TRUNCATE ON api_key_marks",
        ),
        (
            "DELETE ON api_key_readings",
            "REVOKE DELETE ON api_key_readings",
        ),
        (
            "UPDATE ON api_key_changes",
            "REVOKE UPDATE ON api_key_changes",
        ),
    ] {
        database.sql(&format!("GRANT {granted} TO {}", user.name));
        let found = findings(&user.url, &settings()).await;
        let finding = assert_finding(&found, subject, Warning, revoked);
        let statements = finding.found.split_once(": ").expect("statements").1;
        database.sql(statements);
        finds(&user.url, subject, Ok, "cannot hold up").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_writes_is_found() {
    let database = empty_tables().await;
    database.sql(&format!(
        "ALTER DATABASE {} SET default_transaction_read_only = on",
        database.name()
    ));
    finds(database.url(), "postgres.role", Error, "read-only").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let database = empty_tables().await;
    let (proxy, url) = proxy_to(database.url());
    proxy.hold("synchronous_commit");
    let found = findings(&url, &short_timeout()).await;
    assert_finding(&found, "postgres.durability", Error, "no response in time");
    assert_finding(&found, "postgres.migrations", Ok, "none is pending");
    assert_eq!(
        found.last().map(|finding| finding.subject),
        Some("postgres.durability"),
        "{found:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_the_diagnosis_leaves_nothing_behind() {
    let pooled = Pooled::with(2, pooling()).await;
    let through = endpoint(&pooled.url());
    let direct = endpoint(&pooled.server.url("postgres"));
    let found = diagnose(&through, &direct, &pooling(), true).await;
    // The test server is not durable.
    assert_eq!(conspicuous(&found), ["postgres.durability"], "{found:#?}");
    assert_finding(&found, "postgres.durability", Error, "set fsync = on");
    pooled.leaves_nothing_behind().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pooler_that_the_configuration_does_not_name_is_found() {
    let server = PostgresServer::start();
    migrations(&server.url("postgres"))
        .run()
        .await
        .expect("migrated");
    for (mode, pool_size, verdict, text) in [
        ("transaction", 1, Error, "transaction_pooling = true"),
        ("transaction", 5, Error, "transaction_pooling = true"),
        ("session", 5, Ok, "its own server process"),
    ] {
        let bouncer = PgBouncer::start(server.port(), mode, pool_size);
        let through = endpoint(&bouncer.url("postgres"));
        let direct = endpoint(&server.url("postgres"));
        let found = diagnose(&through, &direct, &settings(), true).await;
        assert_finding(&found, "postgres.pooler", verdict, text);
    }
}

/// By the owner without `FORCE`, and by a role with `BYPASSRLS`, every row is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_whose_policies_apply_to_the_user_are_found() {
    let server = PostgresServer::start();
    let url = server.url("postgres");
    migrations(&url).run().await.expect("migrated");
    server.sql(
        "postgres",
        "CREATE ROLE keeper LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO keeper;
        GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO keeper;
        ALTER TABLE pets ENABLE ROW LEVEL SECURITY; ALTER TABLE api_key_tokens ENABLE ROW LEVEL SECURITY",
    );
    let keeper = url.replace("postgres@", "keeper@");
    let subject = "postgres.row_security";
    finds(&keeper, subject, Error, "pets, api_key_tokens").await;
    finds(&url, subject, Ok, "no policy").await;
    server.sql("postgres", "ALTER ROLE keeper BYPASSRLS");
    finds(&keeper, subject, Ok, "no policy").await;
    server.sql(
        "postgres",
        "ALTER ROLE keeper NOBYPASSRLS; GRANT CREATE ON SCHEMA public TO keeper;
        ALTER TABLE pets OWNER TO keeper; ALTER TABLE api_key_tokens DISABLE ROW LEVEL SECURITY",
    );
    finds(&keeper, subject, Ok, "no policy").await;
    server.sql("postgres", "ALTER TABLE pets FORCE ROW LEVEL SECURITY");
    let found = findings(&keeper, &settings()).await;
    assert_finding(&found, subject, Error, "policies apply to pets:");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_behind_the_greatest_id_is_found_and_the_advice_sets_it() {
    let database = empty_tables().await;
    let subject = "postgres.sequence";
    finds(database.url(), subject, Ok, "not behind").await;
    database.sql("INSERT INTO pets (id, name, category_id) VALUES (7, 'Rex', 1)");
    let found = findings(database.url(), &settings()).await;
    let finding = assert_finding(
        &found,
        subject,
        Error,
        "the greatest id is 7, and the sequence is at 0",
    );
    let advice = finding.advice.as_deref().expect("advice");
    let statement = advice.split_once("adds pets: ").expect("a statement").1;
    assert_eq!(database.sql(statement), "7");
    finds(database.url(), subject, Ok, "not behind").await;
    database.sql("ALTER SEQUENCE pets_id_seq CACHE 50");
    finds(
        database.url(),
        subject,
        Error,
        "ALTER SEQUENCE pets_id_seq CACHE 1",
    )
    .await;
}
