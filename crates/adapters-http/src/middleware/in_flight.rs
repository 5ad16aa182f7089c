//! Counts the requests in flight, and limits their number: of all clients, and of one API key, so that one client
//! cannot take every permit.
//!
//! A request that waits for its body lends its permit to others, so that clients that send no body cannot take the
//! permits of requests that are ready to work. The memory of these bodies is bounded by the limits on connections and
//! body sizes.

use std::{cell::RefCell, collections::HashMap, future::ready};

use actix_web::{
    Error,
    dev::{Service, ServiceRequest, ServiceResponse},
};
use animal_store_app::ApiKeyId;
use futures_util::{FutureExt, future::Either};
use prometheus_client::metrics::gauge::Gauge;

use crate::{error::ApiError, metrics::Shed};

/// Number of requests in flight, over all workers.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// Including requests that wait for their body.
    pub(crate) all: Gauge,
    waiting_for_body: Gauge,
    max: i64,
}

/// One request in a count, until it leaves it or its client disconnects.
struct Counted(Gauge);

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        Self {
            all: Gauge::default(),
            waiting_for_body: Gauge::default(),
            max,
        }
    }

    /// Returns the number, including requests that wait for their body.
    pub fn count(&self) -> i64 {
        self.all.get()
    }

    /// Returns how many of these requests do not wait for their body.
    fn ready_of(&self, all: i64) -> i64 {
        all - self.waiting_for_body.get()
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
    pub(crate) async fn read_body<T>(
        &self,
        reading: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let (_, wait) = Counted::new(&self.waiting_for_body);
        let body = reading.await?;
        drop(wait);
        if self.ready_of(self.count()) <= self.max {
            Ok(body)
        } else {
            Err(ApiError::Overloaded(Shed::InFlight))
        }
    }
}

impl Counted {
    /// Adds a request to the count, and returns the number before.
    fn new(count: &Gauge) -> (i64, Self) {
        (count.inc(), Self(count.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
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
        None => Either::Right(ready(Ok(
            request.error_response(ApiError::Overloaded(Shed::InFlight))
        ))),
    }
}

/// Number of requests per API key in one worker: a shared table would need a lock in every request. Keys without
/// requests have no entry.
pub(crate) struct KeyShares {
    counts: RefCell<HashMap<ApiKeyId, usize>>,
    max: usize,
}

/// Permit of one request. It is returned when the request ends or its client disconnects.
pub(crate) struct KeyPermit<'a> {
    shares: &'a KeyShares,
    key: &'a ApiKeyId,
}

impl KeyShares {
    /// Allows one of these workers its share of this number of requests per key, at least 1.
    pub(crate) fn new(max: usize, workers: usize) -> Self {
        Self {
            counts: RefCell::default(),
            max: (max / workers).max(1),
        }
    }

    /// Returns a permit unless the key has reached its maximum.
    pub(crate) fn acquire<'a>(&'a self, key: &'a ApiKeyId) -> Option<KeyPermit<'a>> {
        let mut counts = self.counts.borrow_mut();
        match counts.get_mut(key) {
            Some(count) if *count >= self.max => return None,
            Some(count) => *count += 1,
            None => _ = counts.insert(key.clone(), 1),
        }
        Some(KeyPermit { shares: self, key })
    }
}

impl Drop for KeyPermit<'_> {
    fn drop(&mut self) {
        let mut counts = self.shares.counts.borrow_mut();
        match counts.get_mut(self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(self.key)),
        }
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

        let other = in_flight
            .acquire()
            .expect("the permit of the waiting request");
        assert_eq!(in_flight.count(), 2);
        assert!(in_flight.acquire().is_none());
        // The client of the waiting request disconnects.
        drop(body);
        drop(waiting);
        assert_eq!(in_flight.count(), 1);
        drop(other);
        assert_eq!(in_flight.count(), 0);
    }

    #[tokio::test]
    async fn a_request_needs_a_permit_once_its_body_is_here() {
        let in_flight = InFlight::new(1);
        let _waiting = in_flight.acquire().expect("the permit");
        let (body, received) = tokio::sync::oneshot::channel::<()>();
        let mut reading = Box::pin(in_flight.read_body(received.map(|_| Ok(()))));
        assert!(poll(&mut reading).is_pending());
        let other = in_flight
            .acquire()
            .expect("the permit of the waiting request");
        body.send(()).expect("a receiver");
        assert!(matches!(
            reading.await,
            Err(ApiError::Overloaded(Shed::InFlight))
        ));
        drop(other);
        assert!(in_flight.read_body(ready(Ok(()))).await.is_ok());
    }

    #[test]
    fn each_key_has_its_own_maximum_and_no_entry_without_requests() {
        let shares = KeyShares::new(5, 2);
        let [busy, other] = ["busy", "other"].map(ApiKeyId::new);

        let first = shares.acquire(&busy).expect("the first");
        let second = shares.acquire(&busy).expect("the second");
        assert!(shares.acquire(&busy).is_none());
        drop(shares.acquire(&other).expect("the first of the other key"));

        drop(first);
        let third = shares.acquire(&busy).expect("the permit of the first");
        assert!(shares.acquire(&busy).is_none());
        drop((second, third));
        assert!(shares.counts.borrow().is_empty());
        assert_eq!(KeyShares::new(1, 2).max, 1);
    }
}
