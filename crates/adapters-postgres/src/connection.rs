//! Connections that stay up.
//!
//! **Problem.** A connection can end, freeze, or lead to a server that has become read-only, at any moment. Requests
//! must not wait for its replacement, and an outage must not flood the log.
//!
//! **Invariant.** A [`Supervisor`] keeps one session up and hands it out only while it is connected and not marked as
//! broken; otherwise a request fails at once. It reconnects with backoff. Each reason of an outage is logged once,
//! across all connections of the process ([`retry::OutageLog`]). No secret of a URL is ever shown.
//!
//! **Proof.** `tests/postgres/faults.rs` cuts, freezes and slows down connections; `tests/postgres/encryption.rs` runs
//! every `sslmode` against servers; `endpoint/tests.rs` and the tests of `retry.rs` need no server.

mod application_name;
mod endpoint;
mod retry;
mod session;
mod supervisor;
mod supervisors;
mod tls;

pub(crate) use application_name::application_name;
pub(crate) use endpoint::ConnectionTask;
pub use endpoint::{PgEndpoint, PgEndpointError};
pub(crate) use retry::Outage;
pub(crate) use session::{ConnectionSettings, Session};
pub(crate) use supervisor::{Connection, NO_RESPONSE, READ_ONLY, Supervisor};
pub(crate) use supervisors::Supervisors;
