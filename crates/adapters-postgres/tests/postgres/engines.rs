//! Engines that are not PostgreSQL, told by what PostgreSQL pretends to be.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_breaks_promises_in_silence_is_refused_by_name() {
    let version = |text: &str| {
        format!("CREATE FUNCTION version() RETURNS text LANGUAGE sql AS 'SELECT ''{text}'''")
    };
    for (name, pretend) in [
        (
            "CockroachDB",
            version("CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)"),
        ),
        (
            "YugabyteDB",
            version("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu"),
        ),
        (
            "Amazon Redshift",
            version("PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.63030"),
        ),
        (
            "Amazon Aurora DSQL",
            "CREATE SCHEMA sys CREATE VIEW iam_pg_role_mappings AS SELECT 1".to_owned(),
        ),
    ] {
        let database = PgDatabase::new();
        database.sql(&pretend);
        let option = "options=-c%20search_path%3Dpublic,pg_catalog";
        let url = with_option(database.url(), option);
        let refused = migrations(&url).run().await.expect_err("it is refused");
        assert!(
            matches!(&refused, MigrationError::Unusable(reason) if reason.contains(name)),
            "{refused:?}"
        );
        let is_absent = database.sql("SELECT to_regclass('public.pets') IS NULL");
        assert_eq!(is_absent, "t");
    }
}
