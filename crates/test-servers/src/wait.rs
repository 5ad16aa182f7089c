use std::time::Instant;

use crate::RawConnection;

/// Waits for a condition by checking it again and again.
#[track_caller]
pub fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < RawConnection::TIMEOUT, "the condition is not met in time");
    }
}
