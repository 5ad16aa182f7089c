//! What most tests use.

pub(crate) use std::{
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) use animal_store_adapters_postgres::{MigrationError, PostgresSettings, api_key_store};
pub(crate) use animal_store_app::{
    ports::{ApiKeyStore, BulkStorage, PetRepository, StoreFailure},
    test_support::{api_key_id, stored_pets, wait_until},
};
pub(crate) use animal_store_domain::{
    Pet, PetId,
    PetStatus::{self, Pending, Sold},
};
pub(crate) use animal_store_test_servers::{FaultProxy, PgBouncer, PgDatabase, PostgresServer};
pub(crate) use futures_util::{
    FutureExt, TryFutureExt,
    future::{BoxFuture, join_all},
};
pub(crate) use tokio::time::timeout;

pub(crate) use crate::{
    fixture::{Fixture, NAMES, raise},
    outcomes::{
        Conflict, Failed, Keyed, Mismatch, New, Outcome, PROMPT, Replayed, Success, TEST_TIMEOUT,
        Timeout, Unavailable, Unknown, add_outcome, read_outcome, reason,
    },
    settings::{
        both_modes, check, few_seconds, in_both_modes, one_connection, settings, short_timeout,
    },
    sql_session::SqlSession,
    store::{
        ALL, READ, Store, endpoint, migrated, migrations, proxy_to, start_storage, user_with,
        with_option,
    },
};
