//! Room for as many open files as connections are allowed.

/// Files besides connections: listeners, the runtime, connections to storage.
const OTHERS: u64 = 128;

/// Raises the soft limit of open files as far as the hard one lets it.
pub(crate) fn raise(connections: usize) {
    let wanted = connections as u64 + OTHERS;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit >= wanted => {}
        Ok(limit) => tracing::warn!(limit, wanted, "fewer files may be open than http.max_connections needs"),
        Err(error) => tracing::warn!(%error, wanted, "the limit of open files cannot be raised"),
    }
}
