use super::{Queue, Request};

/// A place in the queue. The request leaves the queue when its ticket is dropped.
pub(super) struct Ticket<'a, R: Request> {
    pub(super) queue: &'a Queue<R>,
    pub(super) number: u64,
}

impl<R: Request> Ticket<'_, R> {
    /// Removes the request from the queue. Returns `false` if it was taken.
    pub(super) fn withdraw(&self) -> bool {
        let mut state = self.queue.lock();
        let index = state
            .requests
            .binary_search_by_key(&self.number, |(number, _)| *number);
        let request = index.ok().and_then(|index| state.requests.remove(index));
        drop(state);
        request.is_some()
    }
}

impl<R: Request> Drop for Ticket<'_, R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}
