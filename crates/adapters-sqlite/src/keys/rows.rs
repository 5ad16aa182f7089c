//! The rows of API keys and of their tokens.

use animal_store_adapter_kit::{KeyColumns, KeyRows, KeyWrite, SelectKeys, TokenColumns, new_mark};
use animal_store_app::{ApiKeyId, IssuedApiKey};
use diesel::{connection::SimpleConnection, prelude::*};

use crate::{
    tables::{api_key_tokens, api_keys},
    values::milliseconds,
};

/// Reads keys with their tokens, in the order of their ids. Keys without tokens are included.
pub(super) fn read(
    connection: &mut SqliteConnection,
    select: SelectKeys<'_>,
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
    KeyRows::collect(rows)
}

/// Writes a key, and the state of the file with this version.
pub(super) fn write(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    key: &KeyWrite,
    version: i64,
) -> QueryResult<()> {
    use api_key_tokens::{api_key_id, expires_at};
    let is_later = expires_at.is_null().or(expires_at.gt(key.kept_until));
    let deleted = api_key_tokens::table.filter(api_key_id.eq(id.as_str()).and(is_later));
    diesel::delete(deleted).execute(connection)?;
    if let Some(after) = &key.changed.after {
        write_key(connection, id, after, version)?;
    } else {
        let row = diesel::update(api_keys::table.find(id.as_str()));
        row.set(api_keys::version.eq(version)).execute(connection)?;
    }
    let mark = new_mark();
    connection.batch_execute(&key.end(version, &format!("x'{mark}'")))
}

fn write_key(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    IssuedApiKey { key, tokens }: &IssuedApiKey,
    version: i64,
) -> QueryResult<()> {
    use api_key_tokens::{api_key_id, created_at, digest, expires_at, last_four};
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
        let content = (
            api_key_id.eq(id.as_str()),
            last_four.eq(&token.last_four),
            created_at.eq(milliseconds(token.created)),
            expires_at.eq(token.expires.map(milliseconds)),
        );
        // It may have expired before, also for another key.
        diesel::insert_into(api_key_tokens::table)
            .values((digest.eq(&token.digest.0[..]), content))
            .on_conflict(digest)
            .do_update()
            .set(content)
            .execute(connection)?;
    }
    Ok(())
}
