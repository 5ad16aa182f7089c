//! The recorded uses of keys.

use std::time::SystemTime;

use animal_store_app::{
    ApiKeyId, from_milliseconds, milliseconds,
    ports::{ApiKeyUse, RecordedUses, StoreResult},
};

use super::{
    sql::{Sql, Value},
    statements,
};

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
pub(super) fn write_uses(
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
