//! The rows of the record of uses.

use std::time::SystemTime;

use animal_store_adapter_kit::{PendingUses, UseStore, recorded_uses};
use animal_store_app::ports::RecordedUses;
use diesel::{
    dsl::{select, sql},
    prelude::*,
    sql_query,
    sql_types::{BigInt, Nullable, SmallInt, Text},
};

use super::SqliteApiKeyStore;
use crate::{
    tables::{api_key_tokens, api_key_uses},
    values::milliseconds,
};

impl UseStore for SqliteApiKeyStore {
    fn address(&self) -> String {
        self.0.path().display().to_string()
    }

    async fn write(&self, uses: &PendingUses, now: i64) -> Result<(), String> {
        let uses = uses.clone();
        let written = self
            .session()
            .change(move |connection| write(connection, &uses, now))
            .await;
        written.map_err(|error| error.to_string())
    }
}

/// Records uses of the keys that exist. No time moves backwards, and the beginning of the record does not change.
fn write(connection: &mut SqliteConnection, uses: &PendingUses, now: i64) -> QueryResult<()> {
    let beginning =
        "INSERT INTO api_key_uses_since (id, since) VALUES (1, ?) ON CONFLICT DO NOTHING";
    sql_query(beginning)
        .bind::<BigInt, _>(now)
        .execute(connection)?;
    for (kind, times) in uses.iter() {
        for (id, time) in times {
            let insertion = sql_query(
                "INSERT INTO api_key_uses (api_key_id, kind, last_used_at)
                 SELECT DISTINCT api_key_id, ?, ? FROM api_key_tokens WHERE api_key_id = ?
                 ON CONFLICT DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)",
            );
            let insertion = insertion
                .bind::<SmallInt, _>(kind as i16)
                .bind::<BigInt, _>(*time);
            insertion.bind::<Text, _>(id.as_str()).execute(connection)?;
        }
    }
    Ok(())
}

/// Reads the uses of the keys that have a token that is valid at this time.
pub(super) fn read(
    connection: &mut SqliteConnection,
    now: SystemTime,
) -> QueryResult<RecordedUses> {
    use api_key_tokens::{api_key_id, expires_at};
    let since = sql::<Nullable<BigInt>>(
        "min(since) FROM (SELECT since FROM api_key_uses_since
         UNION ALL SELECT uses_since FROM api_key_state)",
    );
    let since: Option<i64> = select(since).get_result(connection)?;
    let valid =
        api_key_tokens::table.filter(expires_at.is_null().or(expires_at.gt(milliseconds(now))));
    let valid = api_key_uses::api_key_id.eq_any(valid.select(api_key_id));
    let rows: Vec<(String, i16, i64)> = api_key_uses::table.filter(valid).load(connection)?;
    Ok(recorded_uses(since, rows))
}
