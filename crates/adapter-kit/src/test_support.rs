//! For tests only: the rules of [`SqlApiKeyStore`] that other programs can break, as a suite for databases.
//!
//! The rules of the ports are in `animal_store_app::test_support::contract`. The suites run against both databases,
//! because the compiler does not check the statements. Other programs run statements that both databases accept.
#![expect(
    clippy::missing_panics_doc,
    reason = "a rule panics if the store breaks it"
)]

mod damage;
mod histories;
mod lifetimes;
mod uses;

use std::{ops::Deref, sync::Arc, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyDigest,
    ports::{ApiKeyDirectory, ApiKeyStore, StoreFailure, StoreResult},
    test_support::{
        contract::{api_key_store::Keys, api_key_uses::Uses},
        key_changes, wait_until,
    },
};
use prometheus_client::registry::Registry;

use crate::{ApiKeySnapshot, ApiKeyUseRecord, KeyDatabase, SqlApiKeyStore};

pub use self::{damage::*, histories::*, lifetimes::*, uses::*};

/// Writes one test for each rule, and for each rule of the ports. `setup` is an async function that returns [`SqlKeys`] over an empty store, and a guard
/// that is dropped after the test.
#[macro_export]
macro_rules! sql_api_key_store_contract {
    ($setup:path) => {
        animal_store_app::api_key_store_contract!(async || {
            let (keys, guard) = $setup().await;
            (keys.with_directory(), guard)
        });
        animal_store_app::api_key_uses_contract!(async || {
            let (keys, guard) = $setup().await;
            (keys.with_records_of_uses(), guard)
        });
        $crate::sql_api_key_store_contract!(
            $setup();
            a_first_key_is_added_before_any_change_only,
            a_clock_that_is_ahead_during_one_change_deletes_no_valid_token_and_no_entry,
            a_key_whose_label_is_refused_today_works,
            a_revocation_deletes_tokens_that_look_expired,
            a_revocation_ends_tokens_and_uses_and_only_changes_of_keys_have_versions,
            a_revocation_that_cannot_be_recorded_is_done,
            a_store_in_place_of_the_known_one_has_only_its_own_keys,
            a_store_that_is_being_restored_has_no_key_until_it_is_complete,
            a_write_moves_no_time_backwards_and_no_beginning,
            after_a_change_by_an_older_program_all_keys_are_read,
            after_each_change_the_state_has_the_numbers_of_keys_and_tokens,
            an_invalid_key_is_an_error_for_its_token_only_and_can_be_revoked,
            expired_tokens_are_deleted_by_a_change_a_month_after_one_that_found_them,
            readings_of_a_clock_are_thinned_out_and_forgotten,
            the_marks_of_the_last_thousand_changes_are_kept,
            uses_of_unknown_and_expired_keys_are_not_listed,
            without_the_version_no_key_is_changed,
        );
    };
    ($setup:expr; $($rule:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let (keys, _guard) = $setup.await;
                $crate::test_support::$rule(keys).await;
            }
        )+
    };
}

/// A store of keys, and another program that uses its tables.
pub struct SqlKeys<D: KeyDatabase> {
    /// The store.
    pub store: SqlApiKeyStore<D>,
    /// Runs the statements of the other program.
    pub execute: Box<dyn Fn(&str) + Send + Sync>,
    /// Returns the only value that the other program reads.
    pub number: Box<dyn Fn(&str) -> i64 + Send + Sync>,
}

/// The tables that a restore fills, in the order of their references.
const TABLES: [&str; 6] = [
    "api_key_state",
    "api_key_marks",
    "api_keys",
    "api_key_tokens",
    "api_key_changes",
    "api_key_readings",
];

/// It is used like its store.
impl<D: KeyDatabase> Deref for SqlKeys<D> {
    type Target = SqlApiKeyStore<D>;

    fn deref(&self) -> &SqlApiKeyStore<D> {
        &self.store
    }
}

impl<D: KeyDatabase> SqlApiKeyStore<D> {
    /// Makes a change that is not refused.
    pub async fn make(&self, change: ApiKeyChange) {
        self.change(change, "test").await.expect("changed");
    }

    /// Adds keys, each with a token of its name.
    pub async fn add(&self, ids: &[&str]) {
        for id in ids {
            self.make(key_changes::add(id, id, None)).await;
        }
    }

    /// Revokes a key.
    pub async fn revoke(&self, id: &str) {
        self.make(key_changes::revoke(id)).await;
    }

    /// Starts a directory.
    pub fn directory(&self) -> ApiKeySnapshot {
        self.start_directory(&mut Registry::default()).0
    }

    async fn listed_ids(&self) -> Vec<String> {
        let listed = self.list().await.expect("listed");
        listed.iter().map(|key| key.key.id.to_string()).collect()
    }
}

impl<D: KeyDatabase> SqlKeys<D> {
    /// The store and a directory.
    pub fn with_directory(self) -> Keys {
        Keys {
            directory: Arc::new(self.directory()),
            store: Arc::new(self.store),
        }
    }

    /// The store and two records of uses.
    pub fn with_records_of_uses(self) -> Uses {
        let often = Duration::from_millis(10);
        let instances = [(); 2].map(|()| {
            let registry = &mut Registry::default();
            Arc::new(ApiKeyUseRecord::start(self.store.uses(), 100, often, registry).0) as Arc<_>
        });
        let store = Arc::new(self.store);
        Uses { instances, store }
    }

    /// Saves the state of the store.
    fn save(&self, name: &str) {
        for table in TABLES {
            (self.execute)(&format!(
                "CREATE TABLE {name}_{table} AS SELECT * FROM {table}"
            ));
        }
    }

    /// Restores a saved state in one transaction.
    fn restore(&self, name: &str) {
        let statements = format!(
            "BEGIN; {}; {}; COMMIT",
            clear(),
            TABLES.map(|table| fill(table, name)).join("; ")
        );
        (self.execute)(&statements);
    }
}

/// Empties the tables.
fn clear() -> String {
    let tables = TABLES.iter().rev();
    let statements: Vec<_> = tables.map(|table| format!("DELETE FROM {table}")).collect();
    format!("DELETE FROM api_key_uses; {}", statements.join("; "))
}

/// Fills a table with its saved rows.
fn fill(table: &str, name: &str) -> String {
    format!("INSERT INTO {table} SELECT * FROM {name}_{table}")
}

/// Returns the key of the token with this text.
///
/// # Errors
/// See [`ApiKeyDirectory::find`].
pub async fn find(directory: &ApiKeySnapshot, token: &str) -> StoreResult<Option<ApiKey>> {
    let found = directory.find(ApiKeyDigest::of(&token.into())).await?;
    Ok(found.map(|key| ApiKey::clone(&key)))
}

/// Whether a token is accepted.
pub async fn is_accepted(directory: &ApiKeySnapshot, token: &str) -> bool {
    find(directory, token).await.expect("found").is_some()
}

/// Waits until a token is accepted, or refused: a directory follows the store with a delay. Lookups may fail meanwhile.
pub async fn wait_for(directory: &ApiKeySnapshot, token: &str, is_accepted: bool) {
    let is_expected = |found: Option<ApiKey>| found.is_some() == is_accepted;
    wait_until(token, async || {
        find(directory, token).await.is_ok_and(is_expected)
    })
    .await;
}

/// Whether a lookup fails because the store is not believed.
async fn is_unavailable(directory: &ApiKeySnapshot) -> bool {
    let found = find(directory, "any").await;
    matches!(found, Err(StoreFailure::Unavailable(_)))
}
