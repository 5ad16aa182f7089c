//! The limit of open files. Clients of the API cannot take the files that the management listener, the storage, Redis
//! and the log need.

use animal_store_adapters_http::Limits;
use anyhow::bail;

/// Files that are neither connections of clients nor of the storage: listeners, the main runtime, Redis, the log.
const OTHER_FILES: usize = 128;

/// Files of the runtime of a worker.
const FILES_PER_WORKER: usize = 4;

/// Returns the number of open files that a process with these limits needs.
pub(super) fn needed_files(limits: &Limits, storage_connections: usize) -> usize {
    let workers = FILES_PER_WORKER * limits.workers;
    limits.sockets() + Limits::MANAGEMENT_SOCKETS + storage_connections + workers + OTHER_FILES
}

/// Raises the soft limit of open files, up to the hard limit. If that is too low, lowers `http.max_connections`.
///
/// # Errors
/// If the limit is too low for any connection.
pub(super) fn reserve_files(limits: &mut Limits, storage_connections: usize) -> anyhow::Result<()> {
    let wanted = needed_files(limits, storage_connections);
    let reserved = wanted - limits.sockets();
    let limit = match rlimit::increase_nofile_limit(wanted as u64) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::warn!(%error, wanted, "the limit of open files cannot be raised");
            return Ok(());
        }
    };
    if limit >= wanted {
        return Ok(());
    }
    if !limits.reduce_sockets(limit.saturating_sub(reserved)) {
        bail!("the limit of open files, {limit}, is too low for any connection: raise it (ulimit -n) to {wanted}");
    }
    let max_connections = limits.max_connections;
    tracing::warn!(limit, wanted, max_connections, "the limit of open files is too low for http.max_connections");
    Ok(())
}
