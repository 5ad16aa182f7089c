//! Engines that speak PostgreSQL's protocol and break the promises of this adapter without an error.

use tokio_postgres::{Client, Error};

/// Parts of `version()`, and names.
const ENGINES: [(&str, &str); 3] = [
    ("CockroachDB", "CockroachDB"),
    ("-YB-", "YugabyteDB"),
    ("Redshift", "Amazon Redshift"),
];

/// Returns the name of an engine that cannot be used: its advisory locks lock nothing, an insert does not wait for the
/// idempotency key of another transaction, or ids do not ascend.
pub(super) async fn unsupported(client: &Client) -> Result<Option<&'static str>, Error> {
    let version: String = client
        .query_typed_one("SELECT version()", &[])
        .await?
        .try_get(0)?;
    if let Some((_, name)) = ENGINES.iter().find(|(part, _)| version.contains(part)) {
        return Ok(Some(name));
    }
    // Its version is that of PostgreSQL, but it has a system view of its own.
    let is_dsql = "SELECT to_regclass('sys.iam_pg_role_mappings') IS NOT NULL";
    let is_dsql: bool = client.query_typed_one(is_dsql, &[]).await?.try_get(0)?;
    Ok(is_dsql.then_some("Amazon Aurora DSQL"))
}
