use std::{
    thread,
    time::{Duration, Instant},
};

/// Greatest time until a condition holds, also on a machine that stalls.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Waits for a condition by checking it again and again.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a check without a pause would take the CPU from what it waits for"
)]
pub fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < TIMEOUT,
            "the condition is not met in time"
        );
        thread::sleep(Duration::from_millis(1));
    }
}
