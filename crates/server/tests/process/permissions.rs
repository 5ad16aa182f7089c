//! What the program may do in PostgreSQL.

use animal_store_test_servers::PgDatabase;

use crate::{
    idempotency::keyed_create,
    postgres::{create, list, over, status, wait_until},
    program::{TOKEN, get, read_to_end, send},
};

#[test]
fn a_user_with_the_documented_permissions_is_enough() {
    let database = PgDatabase::new();
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN"));
    assert_eq!(over(database.url()).args(&["migrate"]).run().code, Some(0));
    let documentation = include_str!("../../../../docs/operations.md");
    let grants: Vec<_> = documentation.lines().filter(|line| line.starts_with("    GRANT ")).collect();
    assert_eq!(grants.len(), 4);
    database.sql(&grants.join("\n").replace("TO store;", &format!("TO {role};")));

    let mut running = over(&database.url().replace("postgres@", &format!("{role}@")))
        .env("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s")
        .start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(status(&create(address)), 201);
    for _ in 0..2 {
        assert_eq!(status(&read_to_end(send(address, &keyed_create(TOKEN, "1", "Rex")))), 201);
    }
    assert_eq!(status(&list(address)), 200);
    wait_until(|| database.sql("SELECT count(*) FROM idempotency_keys") == "0");
    assert_eq!(status(&get(management, "/ready", "")), 200);
    drop(running);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
