//! `animal-store health`: queries `/ready`, for containers without an HTTP client.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use opentelemetry_http::{Bytes, HttpClient, Request, Response, hyper::HyperClient};
use serde_json::Value;
use tokio::{runtime::Builder, time::timeout};

use super::InvalidConfig;
use crate::config::duration;

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
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let response = runtime.block_on(async { timeout(args.timeout, query(listen)).await });
    let response = response.map_err(|_| anyhow!("no response from {listen} within {:?}", args.timeout))?;
    judge(&response.map_err(|error| anyhow!("no response from {listen}: {}", error.root_cause()))?)
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

/// Returns the response of the first address that responds. The client is the one that sends traces.
async fn query(listen: SocketAddr) -> anyhow::Result<Response<Bytes>> {
    let client = HyperClient::with_default_connector(*TIMEOUTS.end(), None);
    let mut response = Err(anyhow!("it has no address"));
    for address in addresses(listen) {
        let request = Request::get(format!("http://{address}/ready")).body(Bytes::new())?;
        response = client.send_bytes(request).await.map_err(anyhow::Error::from_boxed);
        if response.is_ok() {
            break;
        }
    }
    response
}

fn judge(response: &Response<Bytes>) -> anyhow::Result<()> {
    let status = response.status();
    if status == 200 {
        return Ok(());
    }
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let state = body["status"].as_str().with_context(|| {
        format!("/ready responded with {status}: check whether management.listen is the address of an animal store")
    })?;
    let checks = body["checks"].as_object().into_iter().flatten();
    let unavailable: Vec<_> = checks
        .filter(|(_, check)| *check != "ready")
        .map(|(name, check)| format!("{name} {}", check.as_str().unwrap_or_default()))
        .collect();
    match &unavailable[..] {
        [] => bail!("not ready: {state}"),
        checks => bail!("not ready: {state} ({})", checks.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &'static str) -> String {
        let response = Response::builder().status(status).body(Bytes::from_static(body.as_bytes()));
        judge(&response.unwrap()).unwrap_err().to_string()
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
        assert!(judge(&Response::new(Bytes::new())).is_ok());
        for body in ["", "{}", "SSH-2.0-OpenSSH"] {
            assert!(error(404, body).contains("/ready responded with 404"), "{body}");
        }
    }

    #[test]
    fn the_error_names_what_is_unavailable() {
        assert_eq!(
            error(503, r#"{"status":"unavailable","checks":{"storage":"unavailable","keys":"ready"}}"#),
            "not ready: unavailable (storage unavailable)"
        );
        assert_eq!(
            error(503, r#"{"status":"draining","checks":{"storage":"ready","keys":"ready"}}"#),
            "not ready: draining"
        );
    }
}
