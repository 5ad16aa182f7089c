use std::time::Duration;

use animal_store_adapters_postgres::{MigrationError, Migrations, PostgresSettings};
use animal_store_test_servers::PgDatabase;

use crate::{
    outcomes::reason,
    store::{endpoint, settings, start_storage},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_store_every_name_is_refused() {
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = PgDatabase::encoded(encoding);
        let migrations = Migrations::new(endpoint(database.url()), Duration::from_secs(10));
        for result in [migrations.run().await, migrations.pending().await] {
            let error = result.expect_err("it is refused");
            assert!(matches!(&error, MigrationError::Encoding(text) if text.contains(encoding)), "{error}");
            assert!(error.is_final());
        }
        for required_at_start in [true, false] {
            let settings = PostgresSettings { required_at_start, ..settings() };
            let started = start_storage(endpoint(database.url()), endpoint(database.url()), settings).await;
            let reason = started.map(drop).map_err(|error| reason(&error)).expect_err(encoding);
            assert!(reason.contains(encoding) && reason.contains("UTF8"), "{reason}");
        }
        assert_eq!(database.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
    }
}
