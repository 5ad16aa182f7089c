//! The log line of a request that failed with a 5xx.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use animal_store_app::ports::{MockPetRepository, StorageError};
use serde_json::Value;

use crate::service::{Service, any_key};

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The line of the request with this id.
    #[track_caller]
    fn line(&self, request_id: &str) -> Value {
        let log = self.0.lock().expect("not poisoned").clone();
        let mut lines = log.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        lines.find(|line: &Value| line["request_id"] == request_id).expect("a line of the request")
    }
}

#[test]
fn the_log_line_of_a_5xx_has_its_cause() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    let mut repository = MockPetRepository::new();
    repository.expect_find().withf(|id| id.get() == 71).returning(|_| Err(StorageError::Corrupt("status 7".into())));
    repository.expect_find().withf(|id| id.get() == 72).returning(|_| panic!("on purpose"));
    repository.expect_find().withf(|id| id.get() == 73).returning(|_| Ok(None));
    let service = Service::start(repository, any_key());

    for (id, status) in [("71", 500), ("72", 500), ("73", 404)] {
        service.request("GET", &format!("/{id}")).header("X-Request-Id", id).send().assert_status(status);
    }

    let failed = log.line("71");
    assert_eq!((&failed["level"], &failed["status"]), (&"ERROR".into(), &500.into()), "{failed}");
    assert_eq!(failed["cause"], "the storage contains an invalid row: status 7", "{failed}");
    assert_eq!((&failed["api_key"], &failed["deprecated"]), (&"key".into(), &true.into()), "{failed}");
    assert_eq!(failed["api_key_label"], "label of key", "{failed}");

    let panicked = log.line("72");
    assert_eq!((&panicked["level"], &panicked["status"]), (&"ERROR".into(), &500.into()), "{panicked}");
    assert_eq!((&panicked["method"], &panicked["path"]), (&"GET".into(), &"/v1/pets/72".into()), "{panicked}");

    let refused = log.line("73");
    assert_eq!((&refused["level"], refused.get("cause")), (&"INFO".into(), None), "{refused}");
}
