//! The number of series does not depend on the texts of clients.

use super::Samples;
use crate::test_app::TestApp;

const REQUESTS: usize = 10_000;

#[test]
fn odd_paths_methods_and_keys_add_no_series() {
    let app = TestApp::start();
    // Every status that the loop below causes.
    send_odd_requests(&app, 0..10);
    let before = Samples::read(&app);

    send_odd_requests(&app, 10..REQUESTS);

    let after = Samples::read(&app);
    assert_eq!(after.len(), before.len());
    assert_eq!(after.sum("requests_total"), REQUESTS);
}

fn send_odd_requests(app: &TestApp, numbers: std::ops::Range<usize>) {
    let mut connection = app.connect();
    for number in numbers {
        let (method, path) = match number % 5 {
            0 => ("GET".to_owned(), format!("/v1/pets/{number}")),
            1 => (format!("BREW{number}"), "/v1/pets".to_owned()),
            2 => ("GET".to_owned(), format!("/{number}?{number}")),
            3 => ("POST".to_owned(), format!("/v1/{number}/%C3%BC")),
            _ => ("GET".to_owned(), format!("/v1/pets?{number}")),
        };
        let key = format!("Authorization: Bearer key-{number}\r\nUser-Agent: {number}\r\n");
        connection.send(format!("{method} {path} HTTP/1.1\r\nHost: {number}.example\r\n{key}\r\n"));
        assert!(matches!(connection.response().status, 401 | 404));
    }
}
