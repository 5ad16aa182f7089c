use std::process::Command;

use animal_store_test_servers::{PgBouncer, PostgresServer};

#[test]
fn clients_share_its_connections() {
    let server = PostgresServer::start();
    let bouncer = PgBouncer::start(server.port(), "transaction", 1);

    let backend = || {
        let arguments = ["-qAtX", "-d", &bouncer.url("postgres"), "-c", "SELECT pg_backend_pid()"];
        let output = Command::new("psql").args(arguments).output().expect("psql runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };

    assert_eq!(backend(), backend());
}
