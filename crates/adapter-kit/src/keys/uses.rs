//! The recorded uses of keys.

use std::time::SystemTime;

use animal_store_app::{
    ApiKeyId, from_milliseconds, milliseconds,
    ports::{ApiKeyUse, RecordedUses, StoreResult},
};

use super::{
    sql::{Access, KeyDatabase, KeySession, Sql, Value},
    statements,
};
use crate::{KeySource, PendingUses, UseStore};

/// Maximum number of uses that a transaction writes.
const USES_PER_TRANSACTION: usize = 1000;

/// The uses of the keys in a database.
pub struct SqlUses<D: KeyDatabase>(pub(super) D);

impl<D: KeyDatabase> UseStore for SqlUses<D> {
    fn address(&self) -> String {
        self.0.session().address()
    }

    /// Writes a part of the uses in each transaction.
    async fn write(&self, uses: &PendingUses, now: i64) -> Result<(), String> {
        let mut session = self.0.session();
        for (kind, times) in uses.iter() {
            let times: Vec<_> = times.iter().map(|(id, time)| (id.clone(), *time)).collect();
            for part in times.chunks(USES_PER_TRANSACTION) {
                let part = part.to_vec();
                let write = move |sql: &mut dyn Sql| write_uses(sql, kind, &part, now);
                let written = session.transact(Access::Write, write).await;
                written.map_err(|failure| failure.reason())?;
            }
        }
        Ok(())
    }
}

/// Returns the uses of the keys that exist.
pub(super) fn list_uses(sql: &mut dyn Sql) -> StoreResult<RecordedUses> {
    let now = sql.now()?;
    let mut uses = RecordedUses::default();
    for mut row in sql.rows(statements::SELECT_USES_SINCE, &[])? {
        let since = row.optional_integer()?;
        uses.since = since.map(time);
    }
    for mut row in sql.rows(statements::SELECT_USES, &[milliseconds(now).into()])? {
        let id = row.text()?;
        let number = row.integer()?;
        let last_used_at = row.integer()?;
        let Ok(id) = ApiKeyId::parse(&id) else {
            continue;
        };
        // Another release may have written another kind.
        for kind in ApiKeyUse::ALL {
            if kind as i64 == number {
                uses.last.insert((id.clone(), kind), time(last_used_at));
            }
        }
    }
    Ok(uses)
}

/// Returns a time of the record, which is in seconds since 1970.
fn time(seconds: i64) -> SystemTime {
    from_milliseconds(seconds.saturating_mul(1000))
}

/// Records uses of one kind of the keys that exist. `uses`: the ids and times, in seconds since 1970. `now`: the
/// beginning of the record, if it has none.
fn write_uses(
    sql: &mut dyn Sql,
    kind: ApiKeyUse,
    uses: &[(ApiKeyId, i64)],
    now: i64,
) -> StoreResult<()> {
    sql.rows(statements::BEGIN_USES, &[now.into()])?;
    let mut values = vec![Value::Integer(kind as i64)];
    let mut rows = Vec::new();
    for (id, time) in uses {
        values.extend([id.as_str().into(), (*time).into()]);
        rows.push(format!("(${}, ${})", values.len() - 1, values.len()));
    }
    sql.rows(&statements::write_uses(&rows.join(", ")), &values)?;
    Ok(())
}
