//! Engines that speak PostgreSQL's protocol and break the promises of this adapter without an error.

use tokio_postgres::Client;

use crate::{checks::texts, error::ConnectionError};

/// Parts of `version()`, and names.
const ENGINES: [(&str, &str); 3] = [
    ("CockroachDB", "CockroachDB"),
    ("-YB-", "YugabyteDB"),
    ("Redshift", "Amazon Redshift"),
];

/// Amazon Aurora DSQL has the version of PostgreSQL, and a system view of its own.
const IS_DSQL: &str = "SELECT 'it is' WHERE to_regclass('sys.iam_pg_role_mappings') IS NOT NULL";

/// Returns the name of an engine that cannot be used: its advisory locks lock nothing, an insert does not wait for the
/// idempotency key of another transaction, or ids do not ascend.
pub(super) async fn unsupported(client: &Client) -> Result<Option<&'static str>, ConnectionError> {
    let version = texts(client, "SELECT version()").await?.concat();
    for (part, name) in ENGINES {
        if version.contains(part) {
            return Ok(Some(name));
        }
    }
    if texts(client, IS_DSQL).await?.is_empty() {
        return Ok(None);
    }
    Ok(Some("Amazon Aurora DSQL"))
}
