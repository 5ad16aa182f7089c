//! How many requests are being answered, and the bound on it.

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

/// Counts the requests whose answer is not there yet, over all workers.
#[derive(Debug, Clone, Default)]
pub struct InFlight(Arc<AtomicUsize>);

/// One of them; ends with its request, also where the client leaves.
struct Counted(Arc<AtomicUsize>);

impl InFlight {
    /// Their number now.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, unless there are `most` already.
    fn begin(&self, most: usize) -> Option<Counted> {
        let counted = Counted(Arc::clone(&self.0));
        (self.0.fetch_add(1, Ordering::Relaxed) < most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many there may be.
#[derive(Debug, Clone)]
pub(crate) struct MaxInFlight {
    pub(crate) in_flight: InFlight,
    pub(crate) most: usize,
}

/// Answers 503 at once where too many requests are in flight, before anything else is done for this one.
pub(crate) async fn admit<B: MessageBody>(
    max: Data<MaxInFlight>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    match max.in_flight.begin(max.most) {
        Some(_counted) => Ok(next.call(request).await?.map_into_left_body()),
        None => Ok(request.error_response(ApiError::Overloaded).map_into_right_body()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_bound_are_admitted_and_one_that_ends_makes_room() {
        let in_flight = InFlight::default();

        let first = in_flight.begin(2).expect("the first");
        let second = in_flight.begin(2).expect("the second");
        assert!(in_flight.begin(2).is_none());
        assert_eq!(in_flight.count(), 2);

        drop(first);
        let third = in_flight.begin(2).expect("in the first's place");
        drop((second, third));
        assert_eq!(in_flight.count(), 0);
    }
}
