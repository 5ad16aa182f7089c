//! The permissions in PostgreSQL that `docs/operations/postgresql.md` names.

use animal_store_test_servers::{HttpClient, PgDatabase, wait_until};

use crate::{
    pets::{create_request, keyed_create_request},
    program::{Program, TOKEN},
};

#[test]
fn the_documented_permissions_are_enough() {
    let database = PgDatabase::new();
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN"));
    assert_eq!(Program::with_postgres(database.url()).args(&["migrate"]).run().code, Some(0));
    let documentation = include_str!("../../../../docs/operations/postgresql.md");
    let lines = documentation.lines().map(str::trim_start);
    let is_grant = |line: &&str| line.starts_with("GRANT ") && line.ends_with(" TO store;");
    // The first block is that of the instances. The later ones are for commands.
    let grants: Vec<_> = lines.skip_while(|line| !is_grant(line)).take_while(is_grant).collect();
    assert_eq!(grants.len(), 4);
    database.sql(&grants.join("\n").replace("TO store;", &format!("TO {role};")));

    let mut running = Program::with_postgres(&database.url().replace("postgres@", &format!("{role}@")))
        .env("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s")
        .start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(create_request(address, TOKEN, "Rex").send().status, 201);
    for _ in 0..2 {
        assert_eq!(keyed_create_request(address, TOKEN, "1", "Rex").send().status, 201);
    }
    assert_eq!(HttpClient::new(address).with_token(TOKEN).get("/v1/pets").status, 200);
    wait_until(|| database.sql("SELECT count(*) FROM idempotency_keys") == "0");
    assert_eq!(HttpClient::new(management).get("/ready").status, 200);
    drop(running);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
