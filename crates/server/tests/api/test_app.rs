//! The real application in this process, on free ports.

use std::{
    net::SocketAddr,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use animal_store_server::{Application, Config, Signals, config::Sources};
use animal_store_test_servers::{HttpClient, RawConnection, Request, Response};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use tokio::runtime::Runtime;

/// A valid token.
pub(crate) const TOKEN: &str = "test-token-1";
/// A valid token of another API key.
pub(crate) const OTHER_TOKEN: &str = "test-token-2";

/// A valid pet.
pub(crate) const PET: &str = r#"{"name":"Rex","categoryId":7}"#;

/// The running application. Dropping it stops the application.
pub(crate) struct TestApp {
    pub(crate) address: SocketAddr,
    pub(crate) management_address: SocketAddr,
    signals: Signals,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl TestApp {
    /// Starts the application with its defaults.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts the application with these configuration keys.
    pub(crate) fn start_with(keys: &[(&str, &str)]) -> Self {
        Self::start_changed(keys, |_| {})
    }

    /// Starts the application with these configuration keys, and with a change of what has no key.
    pub(crate) fn start_changed(keys: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(keys);
        change(&mut config);
        let signals = Signals::default();
        let application_signals = signals.clone();
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            Runtime::new()?.block_on(async {
                let application = Application::build(config, Counter::default()).await?;
                let management_address = application
                    .management_address()
                    .expect("a management address");
                let address = application.address();
                sender.send((address, management_address))?;
                application.run_until(&application_signals).await
            })
        });
        let (address, management_address) = receiver.recv().expect("the application starts");
        Self {
            address,
            management_address,
            signals,
            thread: Some(thread),
        }
    }

    /// A request with a valid API key.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        HttpClient::new(self.address)
            .with_token(TOKEN)
            .request(method, path)
    }

    /// A request without an API key.
    pub(crate) fn anonymous(&self, method: &str, path: &str) -> Request {
        HttpClient::new(self.address).request(method, path)
    }

    /// A request to the management listener.
    pub(crate) fn management(&self, method: &str, path: &str) -> Request {
        HttpClient::new(self.management_address).request(method, path)
    }

    /// GET with a valid API key.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path).send()
    }

    /// POST of a JSON body to `/v1/pets` with a valid API key.
    #[track_caller]
    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> Response {
        self.request("POST", "/v1/pets").json(body).send()
    }

    /// Creates a pet and returns it.
    #[track_caller]
    pub(crate) fn create(&self, body: impl AsRef<[u8]>) -> Value {
        self.post(body).assert_status(201).json()
    }

    /// Creates a pet and returns its path.
    #[track_caller]
    pub(crate) fn create_pet(&self) -> String {
        format!("/v1/pets/{}", self.create(PET)["id"])
    }

    /// A connection for any bytes.
    #[track_caller]
    pub(crate) fn connect(&self) -> RawConnection {
        RawConnection::open(self.address)
    }

    /// A connection on which these bytes were sent.
    #[track_caller]
    pub(crate) fn send(&self, bytes: impl AsRef<[u8]>) -> RawConnection {
        let mut connection = self.connect();
        connection.send(bytes);
        connection
    }

    /// Starts a graceful shutdown, as the first signal does.
    pub(crate) fn begin_shutdown(&self) {
        self.signals.request_shutdown(true);
    }

    /// Shuts the application down and waits for its end.
    pub(crate) fn shut_down(mut self) -> anyhow::Result<()> {
        self.begin_shutdown();
        self.thread
            .take()
            .expect("it runs")
            .join()
            .expect("it does not panic")
    }
}

/// The configuration of an application with pets in memory, and with these keys.
fn config(keys: &[(&str, &str)]) -> Config {
    let defaults = [
        ("http.listen", "127.0.0.1:0"),
        ("http.workers", "2"),
        ("management.listen", "127.0.0.1:0"),
        ("shutdown.drain_delay", "0s"),
        ("storage.backend", "memory"),
    ];
    let flags = defaults.iter().chain(keys);
    let flags = flags.map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let tokens = format!("{TOKEN},{OTHER_TOKEN}");
    let sources = Sources {
        environment: vec![("ANIMAL_STORE_KEYS__MEMORY__TOKENS".into(), tokens.into())],
        flags: flags.collect(),
        ..Sources::default()
    };
    let mut config = Config::load(&sources).expect("a valid configuration");
    // On a busy machine, a connection may wait for its first request.
    config.http.connections.head_timeout = Duration::from_mins(1);
    config
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.signals.request_shutdown(true);
        self.signals.end_shutdown();
        if let Some(thread) = self.thread.take() {
            // The test has its outcome already; an error of the shutdown does not matter.
            let _ = thread.join();
        }
    }
}
