//! The limits because of which a request is refused.

/// The limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExceededLimit {
    InFlight,
    KeyShare,
    RateLimit,
    AuthFailures,
    /// The queue of the storage is full.
    StorageQueue,
    /// Too many API keys are being looked up.
    KeyLookups,
}

impl ExceededLimit {
    pub(crate) const ALL: [Self; 6] = [
        Self::InFlight,
        Self::KeyShare,
        Self::RateLimit,
        Self::AuthFailures,
        Self::StorageQueue,
        Self::KeyLookups,
    ];

    /// Returns its name in the log and in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::KeyShare => "key_share",
            Self::RateLimit => "rate_limit",
            Self::AuthFailures => "auth_failures",
            Self::StorageQueue => "storage_queue",
            Self::KeyLookups => "key_lookups",
        }
    }
}
