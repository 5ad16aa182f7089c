//! Findings that need no connection: the configuration, the limit of open files, and the listeners.

use std::{net::SocketAddr, time::Duration};

use animal_store_adapters_http::{Limits, TlsIdentity};
use animal_store_app::Finding;
use humantime::format_rfc3339_seconds;

use crate::{
    cli::file_limit::needed_files,
    config::{Config, HttpConfig},
};

/// A certificate that ends within this time is a warning.
const RENEWAL_TIME: Duration = Duration::from_hours(14 * 24);

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let limits = &config.http.limits;
    let warnings = config
        .warnings
        .iter()
        .map(|warning| Finding::warning("configuration", warning.as_str(), "see docs/configuration.md"));
    let others = [
        files_finding(limits, config.storage.connections(limits.workers)),
        api_finding(&config.http),
        management_finding(config.management_listen),
    ];
    let tls = config.http.tls.as_ref().map(|tls| tls_finding(&tls.identity.get()));
    warnings.chain(others).chain(tls).collect()
}

fn files_finding(limits: &Limits, storage_connections: usize) -> Finding {
    let needed = needed_files(limits, storage_connections);
    match rlimit::Resource::NOFILE.get() {
        Ok((_, hard)) => judge_files(usize::try_from(hard).unwrap_or(usize::MAX), needed, limits),
        Err(error) => Finding::unknown("process.files", error.to_string(), "see `ulimit -Hn`"),
    }
}

fn judge_files(hard: usize, needed: usize, limits: &Limits) -> Finding {
    let subject = "process.files";
    let found = format!("at most {hard} can be open; the connections need {needed}");
    let advice =
        "raise the hard limit of open files (ulimit -Hn, LimitNOFILE of systemd), or lower http.max_connections";
    if hard >= needed {
        Finding::ok(subject, found)
    } else if limits.clone().reduce_sockets(hard.saturating_sub(needed - limits.sockets())) {
        Finding::warning(subject, found, advice)
    } else {
        Finding::error(subject, format!("{found}; the service does not start"), advice)
    }
}

fn api_finding(http: &HttpConfig) -> Finding {
    let (subject, listen) = ("http.listen", &http.listen);
    if http.is_unencrypted(listen) {
        let found = format!("{listen}: other machines can connect, without TLS");
        let advice = "set http.tls.cert_file, or let only a proxy with TLS connect: \"TLS\" in docs/operations.md";
        return Finding::warning(subject, found, advice);
    }
    if http.tls.is_some() {
        return Finding::ok(subject, format!("{listen}, with TLS"));
    }
    if listen.is_local() {
        return Finding::ok(subject, listen.to_string());
    }
    Finding::ok(subject, format!("{listen}, behind http.trusted_proxies"))
}

fn tls_finding(identity: &TlsIdentity) -> Finding {
    let (subject, advice) = ("http.tls", "renew the certificate: a running service notices its files");
    let end = format_rfc3339_seconds(identity.expires());
    match identity.remaining() {
        None => Finding::error(subject, format!("the certificate has expired at {end}"), advice),
        Some(time) if time < RENEWAL_TIME => {
            Finding::warning(subject, format!("the certificate ends at {end}"), advice)
        }
        Some(_) => Finding::ok(subject, format!("the key fits the certificate, which ends at {end}")),
    }
}

fn management_finding(listen: Option<SocketAddr>) -> Finding {
    let subject = "management.listen";
    match listen {
        None => Finding::warning(
            subject,
            "no listener: there is no /ready, /live or /metrics",
            "set management.listen, such as to 127.0.0.1:8081",
        ),
        Some(listen) if listen.ip().is_loopback() => Finding::ok(subject, listen.to_string()),
        Some(listen) => Finding::warning(
            subject,
            format!("{listen}: other machines can connect, and need no API key"),
            "let only your probes and your monitoring connect, for example by a firewall",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use animal_store_adapters_http::{TlsFiles, TrustedProxies};
    use animal_store_app::Verdict::{self, Error, Ok, Warning};
    use animal_store_test_servers::Certificates;

    use super::*;
    use crate::config::{ListenAddress, Sources};

    fn verdict(finding: &Finding) -> Verdict {
        finding.verdict
    }

    #[test]
    fn a_listener_that_other_machines_reach_is_a_warning() {
        let mut http = Config::load(&Sources::default()).unwrap().http;
        for (address, expected) in [("127.0.0.1:8080", Ok), ("[::1]:8080", Ok), ("0.0.0.0:8080", Warning)] {
            let address: SocketAddr = address.parse().unwrap();
            http.listen = ListenAddress::Tcp(address);
            http.trusted_proxies = TrustedProxies::default();
            assert_eq!(verdict(&api_finding(&http)), expected, "{address}");
            http.trusted_proxies = TrustedProxies::parse(&["10.0.0.1".to_owned()]).unwrap();
            assert_eq!(verdict(&api_finding(&http)), Ok, "{address}");
            assert_eq!(verdict(&management_finding(Some(address))), expected, "{address}");
        }
        assert_eq!(verdict(&management_finding(None)), Warning);
        http.listen = ListenAddress::Unix("/run/http.sock".into());
        http.trusted_proxies = TrustedProxies::default();
        assert_eq!(verdict(&api_finding(&http)), Ok);
    }

    #[test]
    fn a_certificate_that_ends_soon_is_a_warning_and_one_that_has_expired_is_an_error() {
        for (days, expected) in [(0, Error), (13, Warning), (15, Ok)] {
            let folder = tempfile::tempdir().unwrap();
            let files = Certificates::make_until(folder.path(), SystemTime::now() + days * Duration::from_hours(24));
            let (certificate, private_key) = (files.server, files.server_key);
            let identity = TlsFiles { certificate, private_key, client_authorities: None }.load().unwrap();
            assert_eq!(verdict(&tls_finding(&identity)), expected, "{days}");
        }
    }

    #[test]
    fn too_few_files_are_a_warning_and_none_for_the_api_is_an_error() {
        let config = Config::load(&Sources::default()).unwrap();
        let limits = &config.http.limits;
        let needed = needed_files(limits, 0);
        let verdicts = [needed, needed - 1, 100].map(|hard| verdict(&judge_files(hard, needed, limits)));
        assert_eq!(verdicts, [Ok, Warning, Error]);
    }
}
