//! Counts the requests in flight, and limits their number: of all clients, and of one API key, so that one client
//! cannot take every permit.

use std::{cell::RefCell, collections::HashMap, future::ready};

use actix_web::{
    Error,
    dev::{Service, ServiceRequest, ServiceResponse},
};
use animal_store_app::ApiKeyId;
use futures_util::{FutureExt, future::Either};
use prometheus_client::metrics::gauge::Gauge;

use crate::error::{ApiError, ExceededLimit};

/// Number of requests in flight, over all workers.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    pub(crate) all: Gauge,
    max: i64,
}

/// A request in the count, until it ends or its client disconnects.
struct Permit(Gauge);

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            all: Gauge::default(),
            max: i64::try_from(max).unwrap_or(i64::MAX),
        }
    }

    /// Returns the number.
    pub(crate) fn count(&self) -> i64 {
        self.all.get()
    }

    /// Returns a permit unless the maximum is reached.
    fn acquire(&self) -> Option<Permit> {
        let before = self.all.inc();
        let permit = Permit(self.all.clone());
        (before < self.max).then_some(permit)
    }
}

impl Drop for Permit {
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
            request.error_response(ApiError::Overloaded(ExceededLimit::InFlight))
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
    use animal_store_app::test_support::api_key_id;

    use super::*;

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

    #[test]
    fn each_key_has_its_own_maximum_and_no_entry_without_requests() {
        let shares = KeyShares::new(5, 2);
        let [busy, other] = ["busy", "other"].map(api_key_id);

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
