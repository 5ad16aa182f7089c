//! Findings that need no connection: the configuration, the limit of open files, and the listeners.

use std::net::SocketAddr;

use animal_store_adapters_http::{Limits, TrustedProxies};
use animal_store_app::Finding;

use crate::{cli::file_limit::needed_files, config::Config};

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let limits = &config.http.limits;
    let warnings = config
        .warnings
        .iter()
        .map(|warning| Finding::warning("configuration", warning.as_str(), "see docs/configuration.md"));
    let others = [
        files_finding(limits, config.storage.connections(limits.workers)),
        api_finding(config.http.listen, config.http.trusted_proxies != TrustedProxies::default()),
        management_finding(config.management_listen),
    ];
    warnings.chain(others).collect()
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

fn api_finding(listen: SocketAddr, behind_proxy: bool) -> Finding {
    let subject = "http.listen";
    if listen.ip().is_loopback() {
        return Finding::ok(subject, listen.to_string());
    }
    if behind_proxy {
        return Finding::ok(subject, format!("{listen}, behind http.trusted_proxies"));
    }
    let found = format!("{listen}: other machines can connect, without TLS");
    Finding::warning(subject, found, "let only a proxy with TLS connect: \"Behind a proxy\" in docs/operations.md")
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
    use animal_store_app::Verdict::{self, Error, Ok, Warning};

    use super::*;
    use crate::config::Sources;

    fn verdict(finding: &Finding) -> Verdict {
        finding.verdict
    }

    #[test]
    fn a_listener_that_other_machines_reach_is_a_warning() {
        for (address, expected) in [("127.0.0.1:8080", Ok), ("[::1]:8080", Ok), ("0.0.0.0:8080", Warning)] {
            let address = address.parse().unwrap();
            assert_eq!(verdict(&api_finding(address, false)), expected, "{address}");
            assert_eq!(verdict(&api_finding(address, true)), Ok, "{address}");
            assert_eq!(verdict(&management_finding(Some(address))), expected, "{address}");
        }
        assert_eq!(verdict(&management_finding(None)), Warning);
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
