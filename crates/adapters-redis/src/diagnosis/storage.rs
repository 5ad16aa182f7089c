//! Persistence and eviction in Redis.

use std::collections::HashMap;

use animal_store_app::Finding;
use redis::{InfoDict, RedisResult, cmd, pipe};

use super::Inspected;
use crate::connection::Connection;

const NAMES: [&str; 5] = ["appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy"];

/// Settings by their names in [`NAMES`]. `INFO` does not contain all of them.
type Settings = HashMap<String, String>;

pub(super) async fn inspect(mut connection: Connection) -> Inspected {
    let mut query = pipe();
    for name in NAMES {
        query.cmd("CONFIG").arg("GET").arg(name);
    }
    let responses: RedisResult<Vec<Settings>> = query.query_async(&mut connection).await;
    let settings = match responses {
        Ok(responses) => responses.into_iter().flatten().collect(),
        Err(error) if error.is_timeout() || error.is_connection_dropped() => return Err(error.into()),
        // A user with few permissions, or a service that hides the configuration.
        Err(_) => match cmd("INFO").query_async::<InfoDict>(&mut connection).await {
            Ok(info) => from_info(&info),
            Err(error) if error.is_timeout() || error.is_connection_dropped() => return Err(error.into()),
            Err(_) => Settings::new(),
        },
    };
    Ok(vec![persistence_finding(&settings), eviction_finding(&settings)])
}

fn from_info(info: &InfoDict) -> Settings {
    let append_only = info.get::<u8>("aof_enabled").map(|enabled| if enabled == 1 { "yes" } else { "no" }.to_owned());
    let values = [
        ("appendonly", append_only),
        ("maxmemory", info.get("maxmemory")),
        ("maxmemory-policy", info.get("maxmemory_policy")),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn persistence_finding(settings: &Settings) -> Finding {
    let subject = "redis.persistence";
    let advice = "set appendonly yes and appendfsync always";
    let value = |name| settings.get(name).map(String::as_str);
    match (value("appendonly"), value("appendfsync"), value("save")) {
        (None, ..) => not_permitted(subject, advice),
        (Some("yes"), Some("always"), _) => Finding::ok(subject, "appendonly yes, appendfsync always"),
        (Some("yes"), Some(fsync), _) => {
            let found = format!("appendfsync {fsync}: after a crash, keys that were revoked last can be valid again");
            Finding::warning(subject, found, advice)
        }
        (Some("yes"), None, _) => Finding::ok(subject, "appendonly yes; appendfsync is hidden, and should be always"),
        (Some(_), _, Some("")) => {
            Finding::error(subject, "appendonly no, save \"\": a restart loses all API keys", advice)
        }
        (Some(_), _, _) => {
            let found = "appendonly no: after a crash, changes since the last snapshot are lost, and revoked keys can \
                         be valid again";
            Finding::warning(subject, found, advice)
        }
    }
}

fn eviction_finding(settings: &Settings) -> Finding {
    let subject = "redis.eviction";
    let advice = "set maxmemory-policy noeviction";
    match (settings.get("maxmemory").map(String::as_str), settings.get("maxmemory-policy").map(String::as_str)) {
        (Some("0"), Some(_)) => Finding::ok(subject, "memory is not limited"),
        (Some(_), Some("noeviction")) => Finding::ok(subject, "noeviction"),
        (Some(_), Some(policy)) => {
            let found = format!("{policy}: Redis can evict the index, by which keys are revoked");
            Finding::error(subject, found, advice)
        }
        _ => not_permitted(subject, advice),
    }
}

fn not_permitted(subject: &'static str, advice: &str) -> Finding {
    let found = "the user may execute neither CONFIG GET nor INFO";
    Finding::unknown(subject, found, format!("check it as an administrator: {advice}"))
}

#[cfg(test)]
mod tests {
    use animal_store_app::Verdict::{self, Error, Ok, Unknown, Warning};

    use super::*;

    #[track_caller]
    fn assert_verdicts(values: &[(&str, &str)], persistence: Verdict, eviction: Verdict) {
        let settings = values.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(
            (persistence_finding(&settings).verdict, eviction_finding(&settings).verdict),
            (persistence, eviction),
            "{values:?}"
        );
    }

    #[test]
    fn settings_that_are_hidden_are_unknown() {
        assert_verdicts(&[], Unknown, Unknown);
        let info = "aof_enabled:1\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n";
        let settings = from_info(&InfoDict::new(info));
        assert_eq!(
            [persistence_finding(&settings), eviction_finding(&settings)].map(|finding| finding.verdict),
            [Ok; 2]
        );
    }

    #[test]
    fn each_setting_has_its_verdict() {
        let memory = ("maxmemory", "1000000");
        assert_verdicts(
            &[("appendonly", "yes"), ("appendfsync", "always"), memory, ("maxmemory-policy", "noeviction")],
            Ok,
            Ok,
        );
        assert_verdicts(
            &[("appendonly", "yes"), ("appendfsync", "everysec"), memory, ("maxmemory-policy", "allkeys-lru")],
            Warning,
            Error,
        );
        assert_verdicts(
            &[("appendonly", "no"), ("save", "3600 1"), ("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")],
            Warning,
            Ok,
        );
        assert_verdicts(
            &[("appendonly", "no"), ("save", ""), ("maxmemory", "0"), ("maxmemory-policy", "noeviction")],
            Error,
            Ok,
        );
    }
}
