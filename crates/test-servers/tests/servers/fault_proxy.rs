use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use animal_store_test_servers::FaultProxy;

#[test]
fn a_half_closed_connection_still_forwards_data_from_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = FaultProxy::to(listener.local_addr().expect("an address").port());
    let connect = || {
        let client = TcpStream::connect(proxy.address()).expect("the proxy listens");
        (client, listener.accept().expect("the proxy connects").0)
    };
    let (mut client, mut server) = connect();
    // A response proves that the proxy has registered the connection.
    server.write_all(b"!").expect("sent");
    client.read_exact(&mut [0]).expect("received");

    proxy.half_close();

    assert_eq!(client.read(&mut [0]).expect("an end, not an error"), 0);
    let mut word = [0; 4];
    for text in [b"some", b"more"] {
        server.write_all(b"discarded").expect("sent");
        client.write_all(text).expect("sent");
        server.read_exact(&mut word).expect("received");
        assert_eq!(&word, text);
    }
    drop(client);
    assert_eq!(server.read(&mut word).expect("an end"), 0);

    let (mut client, mut server) = connect();
    server.write_all(b"!").expect("sent");
    client
        .read_exact(&mut [0])
        .expect("a new connection works in both directions");
}
