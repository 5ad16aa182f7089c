//! Settings of storages.

use std::time::Duration;

use animal_store_adapters_postgres::{PostgresSettings, SchemaMode};
use futures_util::future::join;

/// Timeouts that do not expire on a busy machine.
pub(crate) fn settings() -> PostgresSettings {
    PostgresSettings {
        required_at_start: true,
        probe_interval: Duration::from_hours(1),
        connect_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        ..PostgresSettings::default()
    }
}

/// For a user that does not own the tables.
pub(crate) fn check() -> PostgresSettings {
    PostgresSettings {
        schema: SchemaMode::Check,
        ..settings()
    }
}

/// For tests in which some statements end in time, also on a busy machine, and the timeout of others expires.
pub(crate) fn few_seconds() -> PostgresSettings {
    PostgresSettings {
        timeout: Duration::from_secs(10),
        ..settings()
    }
}

/// For tests in which the timeout of every call expires, after those of the start.
pub(crate) fn short_timeout() -> PostgresSettings {
    PostgresSettings {
        timeout: Duration::from_secs(2),
        ..settings()
    }
}

/// One connection for reads. Each kind of read has one batch in flight at most.
pub(crate) fn one_connection() -> PostgresSettings {
    PostgresSettings {
        connections_per_worker: 1,
        ..settings()
    }
}

/// The settings without and with transaction pooling, which changes how the adapter talks to any server.
pub(crate) fn both_modes(settings: &PostgresSettings) -> [PostgresSettings; 2] {
    [false, true].map(|transaction_pooling| PostgresSettings {
        transaction_pooling,
        ..settings.clone()
    })
}

/// Runs a test in [`both_modes`], at the same time.
pub(crate) async fn in_both_modes(
    settings: &PostgresSettings,
    test: impl AsyncFn(PostgresSettings),
) {
    let [plain, pooling] = both_modes(settings);
    join(Box::pin(test(plain)), Box::pin(test(pooling))).await;
}
