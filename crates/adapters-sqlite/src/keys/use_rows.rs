//! The rows of the record of uses.

use std::time::SystemTime;

use animal_store_app::{
    ApiKeyId, PendingUses,
    ports::{ApiKeyUse, RecordedUses},
};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{BigInt, SmallInt, Text},
};

use super::error::KeyError;
use crate::{
    schema::tables::{api_key_state, api_key_tokens, api_key_uses},
    time::from_milliseconds,
};

/// Records uses of the keys that exist. No time moves backwards, and the beginning of the record does not change.
pub(super) fn write(connection: &mut SqliteConnection, uses: &PendingUses, now: u64) -> Result<(), KeyError> {
    let beginning = api_key_state::table.filter(api_key_state::uses_since.is_null());
    diesel::update(beginning).set(api_key_state::uses_since.eq(seconds(now))).execute(connection)?;
    for (kind, times) in uses.iter() {
        for (id, time) in times {
            let insertion = sql_query(
                "INSERT INTO api_key_uses (api_key_id, kind, last_used_at) SELECT id, ?, ? FROM api_keys WHERE id = ?
                 ON CONFLICT DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)",
            );
            let insertion = insertion.bind::<SmallInt, _>(code(kind)).bind::<BigInt, _>(seconds(*time));
            insertion.bind::<Text, _>(id.as_str()).execute(connection)?;
        }
    }
    Ok(())
}

/// Reads the uses of the keys that have a token that is valid at this time.
pub(super) fn read(connection: &mut SqliteConnection, now: i64) -> Result<RecordedUses, KeyError> {
    use api_key_tokens::{api_key_id, expires_at};
    let since: Option<i64> = api_key_state::table.select(api_key_state::uses_since).first(connection)?;
    let valid = api_key_tokens::table.filter(expires_at.is_null().or(expires_at.gt(now))).select(api_key_id);
    let rows: Vec<(String, i16, i64)> =
        api_key_uses::table.filter(api_key_uses::api_key_id.eq_any(valid)).load(connection)?;
    let mut uses = RecordedUses { since: since.map(time), ..RecordedUses::default() };
    for (id, kind, last_used_at) in rows {
        let Ok(id) = ApiKeyId::parse(&id) else { continue };
        let last = uses.by_key.entry(id).or_default();
        match ApiKeyUse::ALL.into_iter().find(|one| code(*one) == kind) {
            Some(ApiKeyUse::Request) => last.request = Some(time(last_used_at)),
            Some(ApiKeyUse::GetPet) => last.get_pet = Some(time(last_used_at)),
            // Another release has written it.
            None => {}
        }
    }
    Ok(uses)
}

/// Number that stands for a kind in the file.
const fn code(kind: ApiKeyUse) -> i16 {
    match kind {
        ApiKeyUse::Request => 0,
        ApiKeyUse::GetPet => 1,
    }
}

fn seconds(since_1970: u64) -> i64 {
    i64::try_from(since_1970).unwrap_or(i64::MAX)
}

fn time(seconds: i64) -> SystemTime {
    from_milliseconds(seconds.saturating_mul(1000))
}
