//! Metrics of connections.

use std::time::Duration;

use animal_store_test_servers::wait_until;

use super::Samples;
use crate::test_app::TestApp;

#[test]
fn connections_are_counted_while_they_are_open_and_when_they_are_accepted() {
    let app = TestApp::start_with(&[("http.max_connections", "21")]);
    let open: Vec<_> = (0..5).map(|_| app.connect()).collect();

    wait_until(|| Samples::read(&app).http("connections_open") == 5);
    let samples = Samples::read(&app);
    assert_eq!(samples.http("connections_accepted_total"), 5);
    // Each of the two workers has an equal share.
    assert_eq!(samples.http("connections_limit"), 20);
    assert_eq!(samples.sum("connections_refused_total"), 0);

    drop(open);
    wait_until(|| Samples::read(&app).http("connections_open") == 0);
    assert_eq!(Samples::read(&app).http("connections_accepted_total"), 5);
}

#[test]
fn connections_that_the_client_or_the_timeout_closes_are_not_refused() {
    // On a busy machine, the start of the head arrives within this time.
    let app = TestApp::start_limited(&[], |limits| limits.head_timeout = Duration::from_secs(4));
    drop(app.connect());
    app.send("GET").response().assert_status(408);

    wait_until(|| Samples::read(&app).http("connections_open") == 0);
    let samples = Samples::read(&app);
    assert_eq!(samples.http("connections_accepted_total"), 2);
    assert_eq!(samples.sum("connections_refused_total"), 0);
}
