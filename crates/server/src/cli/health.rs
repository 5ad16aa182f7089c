//! `animal-store health`: queries `/ready`, for containers without an HTTP client, and prints its body.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    time::Duration,
};

use animal_store_adapters_cli::{UsageError, print};
use anyhow::{Context, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::config::{self, Sources, read_management};

pub(super) const TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_mins(1);

pub(super) async fn run(time: Duration, sources: &Sources) -> anyhow::Result<()> {
    let listen = config::read(sources).open(|values| Some(read_management(values)))?;
    let listen = listen.filter(|listen| listen.port() != 0).ok_or_else(|| {
        UsageError("management.listen has no fixed port: /ready has no known address".to_owned())
    })?;
    let response = timeout(time, query(listen)).await;
    let response =
        response.with_context(|| format!("no response from {listen} within {time:?}"))?;
    let response = response.with_context(|| format!("no response from {listen}"))?;
    print(format!("{}\n", ready_body(&response)?))
}

/// Returns the response of `/ready`. A connection to the address of every interface leads to this machine. `[::]`
/// includes IPv4, and a container may have no other loopback address.
async fn query(listen: SocketAddr) -> io::Result<String> {
    let mut addresses = vec![listen];
    if listen.ip().is_unspecified() {
        addresses.push((Ipv4Addr::LOCALHOST, listen.port()).into());
    }
    let mut stream = TcpStream::connect(&addresses[..]).await?;
    stream
        .write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

/// Returns the body of a 200.
fn ready_body(response: &str) -> anyhow::Result<&str> {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    match head.split(' ').nth(1).unwrap_or("no status") {
        "200" => Ok(body),
        "503" => bail!("not ready: {body}"),
        status => {
            bail!(
                "/ready responded with {status}: check whether management.listen is the address of an animal store"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> String {
        format!("HTTP/1.1 {status} Name\r\nconnection: close\r\n\r\n{body}")
    }

    fn error(response: &str) -> String {
        ready_body(response).unwrap_err().to_string()
    }

    #[test]
    fn only_a_200_is_a_success() {
        assert_eq!(ready_body(&response(200, "ready")).unwrap(), "ready");
        for body in ["", "{}", "200"] {
            assert!(
                error(&response(404, body)).contains("/ready responded with 404"),
                "{body}"
            );
        }
        for other in ["", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\n"] {
            assert!(
                error(other).contains("/ready responded with no status"),
                "{other}"
            );
        }
    }
}
