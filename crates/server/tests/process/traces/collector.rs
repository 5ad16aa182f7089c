//! A collector of traces, which receives OTLP over HTTP.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use animal_store_test_servers::Certificates;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1 as otlp,
};
use prost::Message;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::program::{DEADLINE, listen};

/// A span that a collector received.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) trace_id: String,
    pub(super) id: String,
    /// Empty without a parent.
    pub(super) parent: String,
    pub(super) is_server: bool,
    pub(super) is_error: bool,
    /// Also those of the instance that sent the span.
    pub(super) attributes: BTreeMap<String, String>,
}

pub(super) struct Collector {
    address: SocketAddr,
    scheme: &'static str,
    receiver: Receiver<Received>,
    received: Vec<Received>,
}

/// A request.
pub(super) struct Received {
    /// In lower case.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Collector {
    pub(super) fn start() -> Self {
        Self::listen(listen().0, None)
    }

    /// Starts a collector with HTTPS.
    pub(super) fn start_with_tls(certificates: &Certificates) -> Self {
        let certificate = CertificateDer::from_pem_file(&certificates.server);
        let key = PrivateKeyDer::from_pem_file(&certificates.server_key);
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("valid")], key.expect("valid"));
        Self::listen(listen().0, Some(Arc::new(config.expect("valid"))))
    }

    pub(super) fn listen(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Self {
        let address = listener.local_addr().expect("an address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                let Some(tls) = tls.clone() else {
                    respond(stream, sender);
                    continue;
                };
                let connection = ServerConnection::new(tls).expect("a connection");
                respond(StreamOwned::new(connection, stream), sender);
            }
        });
        Self {
            address,
            scheme,
            receiver,
            received: Vec::new(),
        }
    }

    /// The value of `traces.endpoint`.
    pub(super) fn endpoint(&self) -> String {
        let port = self.address.port();
        format!("{}://localhost:{port}/v1/traces", self.scheme)
    }

    /// Waits for the next batch.
    #[track_caller]
    pub(super) fn wait(&mut self) {
        let batch = self.receiver.recv_timeout(DEADLINE);
        self.received.push(batch.expect("a batch of spans"));
    }

    /// All requests until now.
    pub(super) fn received(&mut self) -> &[Received] {
        self.received.extend(self.receiver.try_iter());
        &self.received
    }

    /// All spans that were received until now.
    pub(super) fn spans(&mut self) -> Vec<Span> {
        let mut all = Vec::new();
        for request in self.received() {
            let export = ExportTraceServiceRequest::decode(&request.body[..]).expect("OTLP");
            for sent in export.resource_spans {
                let resource = sent.resource.expect("a resource").attributes;
                let spans = sent.scope_spans.into_iter().flat_map(|scope| scope.spans);
                all.extend(spans.map(|span| Span::new(span, &resource)));
            }
        }
        all
    }
}

impl Span {
    fn new(span: otlp::Span, resource: &[KeyValue]) -> Self {
        let attributes = span.attributes.iter().chain(resource);
        Self {
            name: span.name,
            trace_id: hex::encode(&span.trace_id),
            id: hex::encode(&span.span_id),
            parent: hex::encode(&span.parent_span_id),
            is_server: span.kind == 2,
            is_error: span.status.is_some_and(|status| status.code == 2),
            attributes: attributes.map(attribute).collect(),
        }
    }
}

fn attribute(attribute: &KeyValue) -> (String, String) {
    let value = attribute.value.as_ref().and_then(|any| any.value.as_ref());
    let text = match value.expect("a value") {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{}: {other:?}", attribute.key),
    };
    (attribute.key.clone(), text)
}

/// Responds with 200 to each request of a connection.
fn respond(stream: impl Read + Write + Send + 'static, received: Sender<Received>) {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        // Fails after the program or the test has ended.
        while let Ok(request) = receive(&mut stream)
            && received.send(request).is_ok()
        {
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            let _ = stream
                .get_mut()
                .write_all(response)
                .and_then(|()| stream.get_mut().flush());
        }
    });
}

fn receive(stream: &mut impl BufRead) -> io::Result<Received> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .expect("a length");
    let mut body = vec![0; length.parse().expect("a length")];
    stream.read_exact(&mut body)?;
    Ok(Received { head, body })
}
