//! A query is accepted exactly if each known parameter is given once at most and follows its rule. Otherwise the
//! problems name exactly the wrong parameters. A query that is written from the values reads as these values.
#![no_main]

use animal_store_adapters_http::fuzzing::parse_query;
use animal_store_domain::ListQuery;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use form_urlencoded::Serializer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(query) = str::from_utf8(data) else {
        return;
    };
    let parameters: Vec<_> = form_urlencoded::parse(data).collect();
    let is_wrong = |name: &str, is_valid: &dyn Fn(&str) -> bool| {
        let values: Vec<_> = parameters
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, value)| value)
            .collect();
        values.len() > 1 || values.iter().any(|value| !is_valid(value))
    };
    let wrong = [
        (
            "limit",
            is_wrong("limit", &|text| {
                (1..=100).any(|limit| limit.to_string() == text)
            }),
        ),
        (
            "status",
            is_wrong("status", &|text| {
                ["available", "pending", "sold"].contains(&text)
            }),
        ),
        (
            "cursor",
            is_wrong("cursor", &|text| position(text).is_some()),
        ),
    ];
    match parse_query(query) {
        Ok(parsed) => {
            assert!(wrong.iter().all(|(_, is_wrong)| !is_wrong), "{wrong:?}");
            assert_eq!(parse_query(&written(&parsed)), Ok(parsed));
            let value = |name| {
                parameters
                    .iter()
                    .find(|(other, _)| other == name)
                    .map(|(_, value)| &**value)
            };
            assert_eq!(
                value("limit").unwrap_or("20"),
                parsed.limit.get().to_string()
            );
            assert_eq!(value("status"), parsed.status.map(|status| status.as_str()));
            let after = parsed.after.map_or(0, |after| after.get());
            assert_eq!(value("cursor").map_or(Some(0), position), Some(after));
        }
        Err(problems) => {
            let named: Vec<_> = problems
                .split("; ")
                .filter_map(|problem| problem.split(' ').next())
                .collect();
            let expected: Vec<_> = wrong
                .into_iter()
                .filter(|(_, is_wrong)| *is_wrong)
                .map(|(name, _)| name)
                .collect();
            assert_eq!(named, expected);
        }
    }
});

/// The position of a cursor: the id before it, or 0.
fn position(cursor: &str) -> Option<i64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    Some(i64::from_be_bytes(bytes.try_into().ok()?)).filter(|position| *position >= 0)
}

fn written(query: &ListQuery) -> String {
    let mut text = Serializer::new(String::new());
    text.append_pair("limit", &query.limit.get().to_string());
    if let Some(status) = query.status {
        text.append_pair("status", status.as_str());
    }
    if let Some(after) = query.after {
        text.append_pair("cursor", &URL_SAFE_NO_PAD.encode(after.get().to_be_bytes()));
    }
    text.finish()
}
