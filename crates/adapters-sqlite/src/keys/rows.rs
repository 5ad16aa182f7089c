//! The rows of API keys and of their tokens.

use std::time::SystemTime;

use animal_store_adapter_kit::{KeyColumns, KeyRows, SelectKeys, TokenColumns};
use animal_store_app::{ApiKeyId, IssuedApiKey};
use diesel::prelude::*;

use crate::{
    error::corrupt,
    tables::{api_key_state, api_key_tokens, api_keys},
    values::milliseconds,
};

pub(super) fn version(connection: &mut SqliteConnection) -> QueryResult<i64> {
    let version = api_key_state::table
        .select(api_key_state::version)
        .first(connection)
        .optional()?;
    version.ok_or_else(|| corrupt("table api_key_state has no row"))
}

/// Reads keys with the tokens that are valid at this time, in the order of their ids. Keys without tokens are included.
pub(super) fn read(
    connection: &mut SqliteConnection,
    select: SelectKeys<'_>,
    now: SystemTime,
) -> QueryResult<Vec<KeyRows>> {
    use api_key_tokens::{created_at, digest, expires_at, last_four};
    let keys = api_keys::table
        .left_join(api_key_tokens::table)
        .order((api_keys::id, created_at, digest))
        .into_boxed();
    let keys = match select {
        SelectKeys::ChangedSince(version) => keys.filter(api_keys::version.gt(version)),
        SelectKeys::Id(id) => keys.filter(api_keys::id.eq(id)),
        SelectKeys::Digest(token) => keys.filter(digest.eq(token)),
    };
    let columns = (
        (api_keys::id, api_keys::label, api_keys::scopes),
        (digest, last_four, created_at, expires_at).nullable(),
    );
    let rows = keys
        .select(columns)
        .load_iter::<(KeyColumns, Option<TokenColumns>), _>(connection)?;
    KeyRows::collect(rows, now)
}

/// Writes a key with its tokens in place of what the file has of it. `None`: it does not exist.
pub(super) fn write(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    key: Option<&IssuedApiKey>,
    version: i64,
) -> QueryResult<()> {
    use api_key_tokens::{api_key_id, created_at, digest, expires_at, last_four};
    diesel::delete(api_key_tokens::table.filter(api_key_id.eq(id.as_str()))).execute(connection)?;
    let Some(IssuedApiKey { key, tokens }) = key else {
        let row = diesel::update(api_keys::table.find(id.as_str()));
        return row
            .set(api_keys::version.eq(version))
            .execute(connection)
            .map(drop);
    };
    let scopes = key.scopes.to_string();
    let content = (
        api_keys::label.eq(key.label.as_str()),
        api_keys::scopes.eq(&*scopes),
        api_keys::version.eq(version),
    );
    let row = diesel::insert_into(api_keys::table).values((api_keys::id.eq(id.as_str()), content));
    row.on_conflict(api_keys::id)
        .do_update()
        .set(content)
        .execute(connection)?;
    for token in tokens {
        let row = (
            digest.eq(&token.digest.0[..]),
            api_key_id.eq(id.as_str()),
            last_four.eq(&token.last_four),
            created_at.eq(milliseconds(token.created)),
            expires_at.eq(token.expires.map(milliseconds)),
        );
        diesel::insert_into(api_key_tokens::table)
            .values(row)
            .execute(connection)?;
    }
    Ok(())
}
