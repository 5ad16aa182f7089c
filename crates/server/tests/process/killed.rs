//! What was acknowledged is there, however the process ends.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use animal_store_test_servers::PgDatabase;
use serde_json::Value;

use crate::{
    postgres::over,
    program::{DEADLINE, TOKEN},
};

const CREATES: usize = 10_000;
const CLIENTS: usize = 64;
/// The process is killed when so many were answered.
const KILLED_AT: usize = 4_000;

/// Sends one create and reads its answer; `None` where the connection ended before.
fn create(stream: &mut BufReader<TcpStream>, name: &str) -> Option<(String, Value)> {
    let body = format!(r#"{{"name":"{name}","categoryId":1}}"#);
    let head = format!("POST /v1/pets HTTP/1.1\r\nHost: store.example\r\nAuthorization: Bearer {TOKEN}\r\n");
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    stream.get_mut().write_all(format!("{head}{fields}\r\n\r\n{body}").as_bytes()).ok()?;
    let (mut status, mut length) = (String::new(), 0);
    stream.read_line(&mut status).ok().filter(|&bytes| bytes > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((status, serde_json::from_slice(&body).expect("JSON")))
}

/// Creates until all are or the connection ends; notes what was answered 201.
fn client(number: usize, address: SocketAddr, answered: &AtomicUsize, created: &Mutex<BTreeMap<String, i64>>) {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut stream = BufReader::new(stream);
    for name in (number..CREATES).step_by(CLIENTS).map(|create| format!("animal-{create}")) {
        let Some((status, pet)) = create(&mut stream, &name) else { return };
        assert!(status.starts_with("HTTP/1.1 201 "), "{status}");
        assert_eq!(pet["name"], name.as_str());
        created.lock().expect("nobody panics").insert(name, pet["id"].as_i64().expect("an id"));
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_animal_that_was_answered_201_is_in_the_table_once_after_a_kill() {
    let database = PgDatabase::new();
    let mut running = over(database.url()).start();
    let address = running.address();
    let (answered, created) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));

    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (answered, created) = (&answered, &created);
                scope.spawn(move || client(number, address, answered, created))
            })
            .collect();
        while answered.load(Ordering::Relaxed) < KILLED_AT {
            assert!(!clients.iter().any(thread::ScopedJoinHandle::is_finished), "a client ended too early");
            thread::park_timeout(Duration::from_millis(1));
        }
        running.signal("KILL");
    });
    assert_eq!(running.wait().code, None, "a signal ended it");

    let created = created.into_inner().expect("nobody panics");
    assert!((KILLED_AT..CREATES).contains(&created.len()), "{} were answered", created.len());
    // What it was sent last may still be under way; this waits for it.
    database.sql("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE; COMMIT");
    let rows = database.sql("SELECT name, id FROM pets");
    let stored: Vec<_> = rows.lines().filter_map(|row| row.split_once('|')).collect();
    let by_name: BTreeMap<_, i64> = stored.iter().map(|(name, id)| (*name, id.parse().expect("an id"))).collect();
    assert_eq!(by_name.len(), stored.len(), "an animal is there twice");
    for (name, id) in &created {
        assert_eq!(by_name.get(name.as_str()), Some(id), "{name}");
    }
}
