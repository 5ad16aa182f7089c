//! Counts the requests in flight and limits their number.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use actix_web::{
    Error,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Data,
};

use crate::error::ApiError;

/// Number of requests in flight, over all workers.
#[derive(Debug, Clone, Default)]
pub struct InFlight(Arc<AtomicUsize>);

/// Permit of one request. It is returned when the request ends or its client disconnects.
struct Permit(Arc<AtomicUsize>);

impl InFlight {
    /// Returns the number.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a permit unless `max` requests are in flight.
    fn acquire(&self, max: usize) -> Option<Permit> {
        let permit = Permit(Arc::clone(&self.0));
        (self.0.fetch_add(1, Ordering::Relaxed) < max).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct MaxInFlight {
    pub(crate) in_flight: InFlight,
    pub(crate) max: usize,
}

/// Rejects a request with 503 before anything else if too many are in flight.
pub(crate) async fn limit<B: MessageBody>(
    limit: Data<MaxInFlight>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    match limit.in_flight.acquire(limit.max) {
        Some(_permit) => Ok(next.call(request).await?.map_into_left_body()),
        None => Ok(request.error_response(ApiError::Overloaded).map_into_right_body()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_the_maximum_is_in_flight_and_a_request_that_ends_returns_its_permit() {
        let in_flight = InFlight::default();

        let first = in_flight.acquire(2).expect("the first");
        let second = in_flight.acquire(2).expect("the second");
        assert!(in_flight.acquire(2).is_none());
        assert_eq!(in_flight.count(), 2);

        drop(first);
        let third = in_flight.acquire(2).expect("the permit of the first");
        drop((second, third));
        assert_eq!(in_flight.count(), 0);
    }
}
