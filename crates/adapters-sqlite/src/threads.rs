use crate::{creates::Creates, reads::Reads};

/// The threads that use the file. They end after this is dropped and every queued create has its outcome.
pub(crate) struct Threads {
    pub(crate) reads: Reads,
    pub(crate) creates: Creates,
}
