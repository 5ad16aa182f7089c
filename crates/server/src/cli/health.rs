//! `animal-store health`: queries `/ready`, for containers without an HTTP client.
//!
//! The standard library is enough for it: it reads only the status and the body of one response.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::Value;

use super::InvalidConfig;
use crate::config::duration;

/// Maximum number of bytes of a response.
const MAX_BYTES: usize = 16 * 1024;

const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_mins(1);

#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// Time for the whole request, such as 500ms.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration(TIMEOUTS))]
    timeout: Duration,
}

/// `listen`: the address of the management listener, if there is one.
pub(super) fn run(args: &HealthArgs, listen: Option<SocketAddr>) -> anyhow::Result<()> {
    let invalid = |reason: &str| InvalidConfig(format!("management.listen {reason}: /ready has no known address"));
    let listen = listen.ok_or_else(|| invalid("is empty"))?;
    if listen.port() == 0 {
        return Err(invalid("selects a free port").into());
    }
    let deadline = Instant::now() + args.timeout;
    let mut outcome = Err(ErrorKind::NotConnected.into());
    for address in addresses(listen) {
        outcome = query(address, deadline);
        if outcome.is_ok() {
            break;
        }
    }
    let response = outcome.map_err(|error| match error.kind() {
        // A socket reports its own timeout as either of both.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => anyhow!("no response from {listen} within {:?}", args.timeout),
        _ => anyhow!("no response from {listen}: {error}"),
    })?;
    judge(&String::from_utf8_lossy(&response))
}

/// Returns the addresses of this machine at which a listener can be reached, in the order in which they are tried.
/// `[::]` includes IPv4, and a container may have no other loopback address.
fn addresses(listen: SocketAddr) -> Vec<SocketAddr> {
    let loopback: &[IpAddr] = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
        IpAddr::V6(ip) if ip.is_unspecified() => &[IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)],
        ip => return vec![SocketAddr::new(ip, listen.port())],
    };
    loopback.iter().map(|&ip| SocketAddr::new(ip, listen.port())).collect()
}

/// Returns the response, with its head.
fn query(address: SocketAddr, deadline: Instant) -> io::Result<Vec<u8>> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = TcpStream::connect_timeout(&address, left()?)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(format!("GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let (mut response, mut chunk) = (Vec::new(), [0; 1024]);
    while response.len() < MAX_BYTES {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => response.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(response)
}

fn judge(response: &str) -> anyhow::Result<()> {
    let status = response.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    if status == Some(200) {
        return Ok(());
    }
    let Some(status) = status else { bail!("the response is not HTTP: check management.listen") };
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let Some(state) = body["status"].as_str() else {
        bail!("/ready responded with {status}: check whether management.listen is the address of an animal store")
    };
    let checks = body["checks"].as_object().into_iter().flatten();
    let unavailable: Vec<_> =
        checks.filter(|(_, check)| *check != "ready").map(|(name, check)| format!("{name} {check}")).collect();
    match &unavailable[..] {
        [] => bail!("not ready: {state}"),
        checks => bail!("not ready: {state} ({})", checks.join(", ").replace('"', "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(response: &str) -> String {
        judge(response).unwrap_err().to_string()
    }

    #[test]
    fn an_address_of_every_interface_is_queried_at_its_loopback_address() {
        let addresses = |listen: &str| -> Vec<String> {
            addresses(listen.parse().unwrap()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(addresses("0.0.0.0:81"), ["127.0.0.1:81"]);
        assert_eq!(addresses("[::]:81"), ["[::1]:81", "127.0.0.1:81"]);
        for other in ["10.0.0.1:81", "[2001:db8::1]:81"] {
            assert_eq!(addresses(other), [other]);
        }
    }

    #[test]
    fn a_timeout_is_a_millisecond_to_a_minute() {
        for (text, milliseconds) in [("1ms", Some(1)), ("1m", Some(60_000)), ("0s", None), ("61s", None), ("5", None)] {
            assert_eq!(duration(TIMEOUTS)(text).ok(), milliseconds.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn only_a_200_is_a_success() {
        assert!(judge("HTTP/1.1 200 OK\r\n\r\n").is_ok());
        for response in ["", "HTTP/1.1 20", "HTTP/1.1 é00", "SSH-2.0-OpenSSH"] {
            assert!(error(response).contains("not HTTP"), "{response}");
        }
        assert!(error("HTTP/1.1 404 Not Found\r\n\r\n{}").contains("404"));
    }

    #[test]
    fn the_error_names_what_is_unavailable() {
        let response = |body: &str| error(&format!("HTTP/1.1 503 Service Unavailable\r\nx: y\r\n\r\n{body}"));
        assert_eq!(
            response(r#"{"status":"unavailable","checks":{"storage":"unavailable","keys":"ready"}}"#),
            "not ready: unavailable (storage unavailable)"
        );
        assert_eq!(
            response(r#"{"status":"draining","checks":{"storage":"ready","keys":"ready"}}"#),
            "not ready: draining"
        );
    }
}
