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
#[derive(Debug, Clone)]
pub struct InFlight {
    count: Arc<AtomicUsize>,
    max: usize,
}

/// Permit of one request. It is returned when the request ends or its client disconnects.
struct Permit(Arc<AtomicUsize>);

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        Self { count: Arc::default(), max }
    }

    /// Returns the number.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns a permit unless the maximum is reached.
    fn acquire(&self) -> Option<Permit> {
        let permit = Permit(Arc::clone(&self.count));
        (self.count.fetch_add(1, Ordering::Relaxed) < self.max).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rejects a request with 503, before any other work, if too many are in flight.
pub(crate) async fn limit<B: MessageBody>(
    in_flight: Data<InFlight>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    match in_flight.acquire() {
        Some(_permit) => Ok(next.call(request).await?.map_into_left_body()),
        None => Ok(request.error_response(ApiError::Overloaded).map_into_right_body()),
    }
}

#[cfg(test)]
mod tests {
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
}
