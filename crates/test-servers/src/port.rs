use std::{
    hash::{BuildHasher, Hasher, RandomState},
    net::TcpListener,
};

/// Returns a random number.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Opens a listener on a random port below the ephemeral range: no other process takes the port while a server
/// restarts.
pub(crate) fn listener() -> TcpListener {
    let port = |_| 10_000 + u16::try_from(random() % 20_000).expect("below 20,000");
    let ports = (0..1000).map(port);
    ports
        .map(|port| TcpListener::bind(("127.0.0.1", port)))
        .find_map(Result::ok)
        .expect("a free port")
}

/// Starts a server on a free port. Another process may take the port first, so it is tried a few times.
pub(crate) fn start_on_free_port<T>(
    server: &str,
    mut start: impl FnMut(u16) -> Result<T, String>,
) -> T {
    let mut log = String::new();
    for _ in 0..10 {
        let port = listener().local_addr().expect("an address").port();
        match start(port) {
            Ok(started) => return started,
            Err(text) => log = text,
        }
    }
    panic!("{server} does not start; is it installed? {log}");
}
