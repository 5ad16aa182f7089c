use animal_store_test_servers::{PgDatabase, PostgresServer};

#[test]
fn a_database_is_dropped_with_its_value() {
    let server = PostgresServer::start();
    let socket = server.socket_directory().display();
    let query = format!("host={socket}&port={}&user=postgres", server.port());
    for url in
        [server.url(""), server.url("template1"), format!("postgres:///?{query}"), format!("postgres://?{query}")]
    {
        let database = PgDatabase::at(&url);
        let others = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", database.name());

        assert_eq!(database.sql("SELECT current_database()"), database.name(), "{url}");
        assert_eq!(server.sql("postgres", &others), "1");
        drop(database);

        assert_eq!(server.sql("postgres", &others), "0");
    }
}
