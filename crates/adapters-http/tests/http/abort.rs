//! The end of the server at once.

use animal_store_app::ports::MockPetRepository;
use animal_store_test_servers::RawConnection;

use crate::service::{Service, any_key};

#[test]
fn an_abort_closes_idle_connections_before_their_timeout() {
    let service = Service::start_with(MockPetRepository::new(), any_key(), |limits| {
        limits.keep_alive = 2 * RawConnection::TIMEOUT;
    });
    let mut client = RawConnection::open(service.address());
    client.send("GET /missing HTTP/1.1\r\nHost: a\r\n\r\n");
    client.response().assert_status(404);

    service.abort();
    client.assert_closed();
}
