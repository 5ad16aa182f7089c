//! The rows of the record of uses.

use std::{collections::HashMap, time::SystemTime};

use animal_store_adapter_kit::{PendingUses, UseStore};
use animal_store_app::{
    ApiKeyId, from_milliseconds,
    ports::{ApiKeyUse, RecordedUses, StoreFailure},
};
use tokio_postgres::{Client, types::Type};

use super::column;
use crate::{bulk::BulkConnection, connection::ConnectionSettings, error::ConnectionError};

/// Number of uses in a statement.
const USES_PER_STATEMENT: usize = 5_000;

const BEGIN_RECORD: &str = "INSERT INTO api_key_use_record (since) VALUES ($1) ON CONFLICT DO NOTHING";

/// Writes uses of the keys that exist, in the order of their ids, so that two instances do not deadlock.
const WRITE: &str = "
    INSERT INTO api_key_uses AS found (api_key_id, kind, last_used_at)
    SELECT id, $1, last_used_at FROM unnest($2, $3) AS given (id, last_used_at)
    WHERE EXISTS (SELECT FROM api_key_tokens WHERE api_key_id = id) ORDER BY id
    ON CONFLICT (api_key_id, kind) DO UPDATE SET last_used_at = excluded.last_used_at
    WHERE found.last_used_at < excluded.last_used_at";

/// Writes uses, each time on a new connection.
pub(crate) struct UseWriter(ConnectionSettings);

impl UseWriter {
    pub(crate) fn new(connections: &ConnectionSettings) -> Self {
        Self(connections.clone())
    }

    async fn write_to(&self, client: &Client, uses: &PendingUses, now: i64) -> Result<(), ConnectionError> {
        let ConnectionSettings { endpoint, postgres, .. } = &self.0;
        let beginning = time(now);
        let begin = [(&beginning as _, Type::TIMESTAMPTZ)];
        endpoint.within(postgres.timeout, client.execute_typed(BEGIN_RECORD, &begin)).await?;
        for (kind, times) in uses.iter() {
            let uses: Vec<_> = times.iter().map(|(id, seconds)| (id.as_str(), time(*seconds))).collect();
            for uses in uses.chunks(USES_PER_STATEMENT) {
                let (ids, times): (Vec<_>, Vec<_>) = uses.iter().copied().unzip();
                let kind = kind as i16;
                let parameters =
                    [(&kind as _, Type::INT2), (&ids as _, Type::TEXT_ARRAY), (&times as _, Type::TIMESTAMPTZ_ARRAY)];
                endpoint.within(postgres.timeout, client.execute_typed(WRITE, &parameters)).await?;
            }
        }
        Ok(())
    }
}

impl UseStore for UseWriter {
    fn address(&self) -> String {
        self.0.endpoint.to_string()
    }

    async fn write(&self, uses: &PendingUses, now: i64) -> Result<(), String> {
        let written = async {
            let (client, _task) = self.0.connect().await?;
            self.write_to(&client, uses, now).await
        };
        written.await.map_err(|error| error.to_string())
    }
}

/// Reads the uses of the keys that exist.
pub(super) async fn read(connection: &BulkConnection) -> Result<RecordedUses, StoreFailure> {
    let since = connection.query("SELECT since FROM api_key_use_record", &[]).await?;
    let since = since.first().map(|row| column(row.try_get(0))).transpose()?;
    let select = "SELECT api_key_id, kind, last_used_at FROM api_key_uses WHERE EXISTS (
        SELECT FROM api_key_tokens AS token WHERE token.api_key_id = api_key_uses.api_key_id
            AND (expires_at IS NULL OR expires_at > now()))";
    let mut last = HashMap::new();
    for row in connection.query(select, &[]).await? {
        let (id, kind, last_used_at): (&str, i16, SystemTime) =
            (column(row.try_get(0))?, column(row.try_get(1))?, column(row.try_get(2))?);
        let Ok(id) = ApiKeyId::parse(id) else { continue };
        // Another release may have written another kind.
        if let Some(kind) = ApiKeyUse::ALL.into_iter().find(|one| *one as i16 == kind) {
            last.insert((id, kind), last_used_at);
        }
    }
    Ok(RecordedUses { since, last })
}

fn time(seconds: i64) -> SystemTime {
    from_milliseconds(seconds.saturating_mul(1000))
}
