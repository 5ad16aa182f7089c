//! A Sentinel that names another master each time.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::prelude::*;

/// A Sentinel that serves one connection after the other, and names another of its masters each time.
pub(crate) struct FakeSentinel {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) questions: Arc<AtomicUsize>,
}

impl FakeSentinel {
    pub(crate) fn of(masters: [u16; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let sentinel = Self {
            address: listener.local_addr().expect("an address"),
            connections: Arc::default(),
            questions: Arc::default(),
        };
        let connections = Arc::clone(&sentinel.connections);
        let questions = Arc::clone(&sentinel.questions);
        thread::spawn(move || {
            for connection in listener.incoming() {
                connections.fetch_add(1, Ordering::Relaxed);
                let mut connection = connection.expect("a connection");
                let mut received = [0; 4096];
                while let Ok(length @ 1..) = connection.read(&mut received) {
                    let request = String::from_utf8_lossy(&received[..length]);
                    let response = if request.contains("HELLO") {
                        "%1\r\n+proto\r\n:3\r\n".to_owned()
                            + &"+OK\r\n".repeat(request.matches("CLIENT").count())
                    } else {
                        let master = masters[questions.fetch_add(1, Ordering::Relaxed) % 2];
                        let address = format!("+ip\r\n+127.0.0.1\r\n+port\r\n+{master}\r\n");
                        format!("*1\r\n%4\r\n+name\r\n+shop\r\n+flags\r\n+master\r\n{address}")
                    };
                    // The client may have left.
                    let _ = connection.write_all(response.as_bytes());
                }
            }
        });
        sentinel
    }
}
