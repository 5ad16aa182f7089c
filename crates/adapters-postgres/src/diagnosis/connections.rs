use animal_store_app::Finding;

use super::inspection::{Inspected, Inspection};
use crate::PostgresSettings;

/// Maximum number of connections, number that is reserved for administrators, and number in use. `pg_stat_activity`
/// hides the kind of connections of other users; the statistics of the databases need no permission.
const CONNECTIONS: &str = "
    SELECT current_setting('max_connections')::bigint,
        current_setting('superuser_reserved_connections')::bigint
            + coalesce(current_setting('reserved_connections', true), '0')::bigint,
        (SELECT sum(numbackends) FROM pg_stat_database)";

const SUBJECT: &str = "postgres.connections";

/// Compares the connections that are left with those of one more instance.
pub(super) async fn inspect(inspection: &Inspection, settings: &PostgresSettings, workers: usize) -> Inspected {
    let needed = settings.connections(workers);
    if settings.transaction_pooling {
        let advice = format!("compare the limits of the pooler with the {needed} connections of each instance");
        return Ok(vec![Finding::unknown(SUBJECT, "behind a pooler, which has limits of its own", advice)]);
    }
    let row = inspection.row(CONNECTIONS).await?;
    let (max, reserved, used): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let usable = max - reserved;
    // The connection of this diagnosis ends.
    let left = (usable - used + 1).max(0);
    let found = format!("{left} of {usable} are left; an instance opens {needed}");
    Ok(vec![if usize::try_from(left).unwrap_or(usize::MAX) >= needed {
        Finding::ok(SUBJECT, found)
    } else {
        let advice = "before another instance starts, raise max_connections of PostgreSQL, or lower \
                      storage.postgres.connections_per_worker or http.workers";
        Finding::warning(SUBJECT, found, advice)
    }])
}
