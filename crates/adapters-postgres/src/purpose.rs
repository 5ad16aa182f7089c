use crate::PostgresSettings;

/// The purpose of a connection that executes batches. Each has a queue of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Reads,
    Creates,
    /// Creates with an idempotency key, which may wait for another process.
    KeyedCreates,
}

impl Purpose {
    /// The purpose, for the log.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Creates => "creates",
            Self::KeyedCreates => "creates with a key",
        }
    }

    /// Whether the outcome of a batch that ended without a response is unknown.
    pub(crate) fn changes_pets(self) -> bool {
        self != Self::Reads
    }

    /// Number of connections that serve the queue. A second one for creates would make their batches smaller.
    pub(crate) const fn connections(self, settings: &PostgresSettings) -> usize {
        match self {
            Self::Reads => settings.connections_per_worker,
            Self::Creates | Self::KeyedCreates => 1,
        }
    }

    /// Greatest number of requests that wait.
    pub(crate) const fn capacity(self, settings: &PostgresSettings) -> usize {
        match self {
            Self::Reads => settings.max_waiting_reads,
            Self::Creates | Self::KeyedCreates => settings.max_waiting_creates,
        }
    }
}
