//! Counts the requests in flight and limits their number.
//!
//! A request that waits for its body lends its permit to others, so that clients that send no body cannot take the
//! permits of requests that are ready to work. The memory of these bodies is bounded by the limits on connections and
//! body sizes.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use actix_web::{
    Error,
    dev::{Service, ServiceRequest, ServiceResponse},
};

use futures_util::{FutureExt, future::Either};

use crate::{error::ApiError, metrics::Shed};

/// Number of requests in flight, over all workers.
#[derive(Debug, Clone)]
pub struct InFlight {
    all: Arc<AtomicUsize>,
    waiting_for_body: Arc<AtomicUsize>,
    max: usize,
}

/// One request in a count, until it leaves it or its client disconnects.
struct Counted(Arc<AtomicUsize>);

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        Self { all: Arc::default(), waiting_for_body: Arc::default(), max }
    }

    /// Returns the number, including requests that wait for their body.
    pub fn count(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Returns how many of these requests do not wait for their body.
    fn ready_of(&self, all: usize) -> usize {
        all.saturating_sub(self.waiting_for_body.load(Ordering::Relaxed))
    }

    /// Returns a permit unless the maximum is reached.
    fn acquire(&self) -> Option<Counted> {
        let (before, permit) = Counted::new(&self.all);
        (self.ready_of(before) < self.max).then_some(permit)
    }

    /// Reads the body of a request, which lends its permit meanwhile.
    ///
    /// # Errors
    /// The error of `reading`, or [`ApiError::Overloaded`] if the maximum was reached meanwhile.
    pub(crate) async fn read_body<T>(&self, reading: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        let (_, wait) = Counted::new(&self.waiting_for_body);
        let body = reading.await?;
        drop(wait);
        if self.ready_of(self.count()) <= self.max { Ok(body) } else { Err(ApiError::Overloaded(Shed::InFlight)) }
    }
}

impl Counted {
    /// Adds a request to the count, and returns the number before.
    fn new(count: &Arc<AtomicUsize>) -> (usize, Self) {
        (count.fetch_add(1, Ordering::Relaxed), Self(Arc::clone(count)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rejects a request with 503, before any other work, if too many are in flight.
pub(crate) fn limit<S>(
    in_flight: &InFlight,
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    match in_flight.acquire() {
        Some(permit) => Either::Left(service.call(request).inspect(move |_| drop(permit))),
        None => Either::Right(ready(Ok(request.error_response(ApiError::Overloaded(Shed::InFlight))))),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn at_most_the_maximum_is_in_flight_and_a_request_that_ends_returns_its_permit() {
        let in_flight = InFlight::new(2);

        let first = in_flight.acquire().expect("the first");
        let second = in_flight.acquire().expect("the second");
        assert!(in_flight.acquire().is_none());
        assert_eq!(in_flight.count(), 2);

        drop(first);
        let third = in_flight.acquire().expect("the permit of the first");
        drop((second, third));
        assert_eq!(in_flight.count(), 0);
    }

    #[tokio::test]
    async fn a_request_that_waits_for_its_body_leaves_its_permit_to_another() {
        let in_flight = InFlight::new(1);
        let waiting = in_flight.acquire().expect("the permit");
        let mut body = Box::pin(in_flight.read_body(pending::<Result<(), _>>()));
        assert!(poll(&mut body).is_pending());

        let other = in_flight.acquire().expect("the permit of the waiting request");
        assert_eq!(in_flight.count(), 2);
        assert!(in_flight.acquire().is_none());
        // The client of the waiting request disconnects.
        drop(body);
        drop(waiting);
        assert_eq!(in_flight.count(), 1);
        drop(other);
        assert_eq!(in_flight.count(), 0);
    }
}
