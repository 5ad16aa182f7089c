//! The timeouts of the shutdown.

use super::*;

#[test]
fn the_drain_delay_is_at_most_half_of_the_shutdown_timeout() {
    let shutdown = |variables: &[_]| Config::load(&environment(variables)).map(|config| config.shutdown);
    let (timeout, delay) = ("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY");
    for (variables, milliseconds) in [
        (&[][..], 5000),
        (&[(timeout, "10s")], 5000),
        (&[(timeout, "9s")], 4500),
        (&[(timeout, "1s"), (delay, "")], 500),
        (&[(timeout, "1s"), (delay, "500ms")], 500),
        (&[(delay, "0s")], 0),
    ] {
        assert_eq!(
            shutdown(variables).unwrap().drain_delay(false),
            Duration::from_millis(milliseconds),
            "{variables:?}"
        );
    }
    let error = "shutdown.drain_delay (ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY) must be at most half of shutdown.timeout";
    assert_eq!(errors(&environment(&[(timeout, "1s"), (delay, "501ms")])), [error]);
}

#[test]
fn half_a_second_or_a_quarter_of_the_shutdown_timeout_is_for_the_log() {
    for (timeout, milliseconds) in [("30s", 29_500), ("2s", 1500), ("1s", 750), ("1ms", 0)] {
        let config = Config::load(&environment(&[("ANIMAL_STORE_SHUTDOWN__TIMEOUT", timeout)])).unwrap();
        assert_eq!(config.shutdown.requests_timeout().as_millis(), milliseconds, "{timeout}");
    }
}
