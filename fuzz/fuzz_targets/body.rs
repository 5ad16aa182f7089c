//! A body is accepted exactly if it is a JSON object with each member at most once, each by the rule of the interface.
//! The pet has its values. Otherwise the problems name exactly the wrong members.
#![no_main]

use std::{borrow::Cow, fmt};

use animal_store_pet_json::{Subject, from_slice};
use libfuzzer_sys::fuzz_target;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

fuzz_target!(|data: &[u8]| {
    let parsed = from_slice(data, Subject::Line);
    if let Ok(pet) = &parsed {
        let mut written =
            json!({ "name": pet.name().as_str(), "categoryId": pet.category_id().get() });
        if let Some(status) = pet.status() {
            written["status"] = status.as_str().into();
        }
        let written = written.to_string();
        assert_eq!(
            from_slice(written.as_bytes(), Subject::Line).as_ref(),
            Ok(pet)
        );
    }
    let json = data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(data);
    let members = str::from_utf8(json)
        .ok()
        // Reading a name as bytes does not check it.
        .and_then(|text| serde_json::from_str::<&RawValue>(text).ok())
        .and_then(|json| serde_json::from_str(json.get()).ok());
    let Some(Members(members)) = members else {
        assert!(parsed.is_err_and(|problems| problems.starts_with("the line must be ")));
        return;
    };
    let once = |name: &str| {
        let mut values = members
            .iter()
            .filter(|(other, _)| other == name.as_bytes())
            .map(|(_, json)| json.get());
        let first = values.next();
        values.next().is_none().then_some(first)
    };
    let name = once("name")
        .flatten()
        .and_then(|json| serde_json::from_str::<String>(json).ok());
    let name = name.filter(|text| is_name(text));
    let category_id = once("categoryId").flatten();
    let status = once("status").filter(|json| {
        json.is_none_or(|json| {
            let status = serde_json::from_str::<Value>(json).unwrap_or_default();
            ["available", "pending", "sold"]
                .iter()
                .any(|allowed| status == *allowed)
        })
    });
    match parsed {
        Ok(pet) => {
            assert_eq!(name.as_deref(), Some(pet.name().as_str()));
            check_integer(category_id.expect("once"), Some(pet.category_id().get()));
            let status = status
                .expect("once")
                .map(|json| json.trim_matches('"').to_owned());
            if status.as_ref().is_none_or(|status| !status.contains('\\')) {
                assert_eq!(
                    status.as_deref(),
                    pet.status().map(|status| status.as_str())
                );
            }
        }
        Err(problems) => {
            let named = |member: &str| {
                problems
                    .split("; ")
                    .any(|problem| problem.split(' ').next() == Some(member))
            };
            assert_eq!(named("name"), name.is_none(), "{problems}");
            assert_eq!(named("status"), status.is_none(), "{problems}");
            match category_id {
                None => assert!(named("categoryId"), "{problems}"),
                Some(json) if named("categoryId") => check_integer(json, None),
                Some(_) => assert!(named("name") || named("status"), "{problems}"),
            }
        }
    }
});

fn is_name(text: &str) -> bool {
    let is_control = |character| matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}');
    (1..=255).contains(&text.chars().count())
        && !text.trim().is_empty()
        && !text.contains(is_control)
}

/// Compares an integer with its text. Floating point cannot decide every text with many digits.
fn check_integer(json: &str, parsed: Option<i64>) {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if !json.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        assert_eq!(parsed, None);
    } else if !json.contains(['.', 'e', 'E']) {
        assert_eq!(parsed, json.parse().ok());
    } else {
        let number: f64 = json.parse().expect("a number");
        let is_integer = number.fract() == 0.0 && number.abs() <= MAX_EXACT;
        let mantissa = json.split(['e', 'E']).next().unwrap_or_default();
        let is_zero = !mantissa.contains(['1', '2', '3', '4', '5', '6', '7', '8', '9']);
        if let Some(parsed) = parsed {
            assert!(is_integer && number == parsed as f64, "{json} is {parsed}");
        } else if mantissa.len() <= 15 {
            assert!(
                !is_integer || number == 0.0 && !is_zero,
                "{json} is refused"
            );
        }
    }
}

/// The members of an object in their order, also if one is given twice.
struct Members(Vec<(Vec<u8>, Box<RawValue>)>);

/// A name, in which half of a surrogate pair is valid JSON.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, _>()? {
            members.push((name.into_owned(), value));
        }
        Ok(Members(members))
    }
}
