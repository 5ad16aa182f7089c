//! Room for as many open files as there may be connections, of clients and to storage.

/// Files besides those connections: listeners, the runtime, what the process has one of.
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
