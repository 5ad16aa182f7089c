/// Files that are not connections: listeners, the runtime, the log.
const OTHER_FILES: u64 = 128;

/// Raises the soft limit of open files for this number of connections, up to the hard limit.
pub(super) fn raise_file_limit(connections: usize) {
    let wanted = connections as u64 + OTHER_FILES;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit >= wanted => {}
        Ok(limit) => tracing::warn!(limit, wanted, "the limit of open files is too low for http.max_connections"),
        Err(error) => tracing::warn!(%error, wanted, "the limit of open files cannot be raised"),
    }
}
