//! Opening connections.
//!
//! **Problem.** A connection leads to one of several hosts, with or without encryption, and its URL has secrets.
//!
//! **Invariant.** Hosts are tried in order, each within its share of the timeout. `sslmode` and `sslrootcert` mean what
//! they mean in libpq. No secret of a URL is ever shown. `batching` keeps connections up.
//!
//! **Proof.** `tests/postgres/encryption.rs` runs every `sslmode` against servers, `hosts.rs` several hosts;
//! `endpoint/tests.rs` needs no server.

mod endpoint;
mod tls;

use std::sync::Arc;

use animal_store_adapter_kit::OutageLog;
use tokio::sync::watch;

pub(crate) use endpoint::ConnectionTask;
pub use endpoint::{PgEndpoint, PgEndpointError};

use crate::{PostgresSettings, metrics::Metrics};

/// Settings and shared state of the connections of a process.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) postgres: PostgresSettings,
    /// Each reason of an outage is logged once for all connections.
    pub(crate) outages: Arc<OutageLog>,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the schema can be used. No dispatcher connects before it can.
    pub(crate) schema_ready: watch::Receiver<bool>,
}
