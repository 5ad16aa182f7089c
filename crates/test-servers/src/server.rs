use std::marker::PhantomData;

use crate::{Certificates, home::Home, port, watched::Watched};

/// A server of this kind that a test can stop, start again and suspend.
pub struct Server<Kind> {
    // Dropped before the folder is removed.
    process: Option<Watched>,
    pub(crate) home: Home,
    pub(crate) options: Vec<String>,
    pub(crate) port: u16,
    pub(crate) certificates: Option<Certificates>,
    run: fn(&Self) -> Result<Watched, String>,
    kind: PhantomData<Kind>,
}

impl<Kind> Server<Kind> {
    /// Starts a server on a free port by this function, which is also used to start it again.
    pub(crate) fn start_by(
        run: fn(&Self) -> Result<Watched, String>,
        home: Home,
        options: Vec<String>,
        certificates: Option<Certificates>,
    ) -> Self {
        let mut server = Self {
            process: None,
            home,
            options,
            port: 0,
            certificates,
            run,
            kind: PhantomData,
        };
        port::start_on_free_port("the server", |port| {
            server.port = port;
            server.try_start()
        });
        server
    }

    fn try_start(&mut self) -> Result<(), String> {
        self.process = Some((self.run)(self)?);
        Ok(())
    }

    fn process(&self) -> &Watched {
        self.process.as_ref().expect("the server runs")
    }

    /// The TCP port, which is also part of the name of the Unix socket of PostgreSQL.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The ports of Redis without and with TLS. One of them is 0, which is none.
    pub(crate) const fn plain_and_tls_port(&self) -> [u16; 2] {
        if self.certificates.is_some() {
            [0, self.port]
        } else {
            [self.port, 0]
        }
    }

    /// The certificates of a server with TLS.
    pub const fn certificates(&self) -> &Certificates {
        self.certificates
            .as_ref()
            .expect("a server that was started with TLS")
    }

    /// Stops the server at once, as in a crash.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts the stopped server again, at the same address: PostgreSQL with the committed data, Redis without any.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        self.try_start().expect("the server starts again");
    }

    /// Suspends the server: connections stay open, and the server does not respond.
    pub fn pause(&self) {
        self.process().signal("STOP");
    }

    /// Resumes the suspended server.
    pub fn resume(&self) {
        self.process().signal("CONT");
    }
}
