//! The members of a body and the parameters of a query, as they were sent.
//!
//! serde stops at the first error. Therefore members are read as text and parsed one by one, so that one response names
//! every problem.

use std::{array, borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use validator::ValidationError;

/// What a request has for a member of its body or a parameter of its query.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) enum Member<'a> {
    #[default]
    Absent,
    /// The text of its JSON value, or the decoded value of a query.
    Given(Cow<'a, str>),
    GivenTwice,
}

impl<'a> Member<'a> {
    fn set(&mut self, text: Cow<'a, str>) {
        *self = if *self == Self::Absent {
            Self::Given(text)
        } else {
            Self::GivenTwice
        };
    }

    /// Returns the value of a member that must be given.
    pub(super) fn required<T, E: fmt::Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ValidationError> {
        let problem = match self {
            Self::Absent => "is required".into(),
            Self::Given(text) => match parse(text) {
                Ok(value) => return Ok(value),
                Err(error) => error.to_string().into(),
            },
            Self::GivenTwice => "must be given once".into(),
        };
        Err(ValidationError::new("invalid").with_message(problem))
    }

    /// Returns the value of a member, or the default if it is absent.
    pub(super) fn optional<T: Default, E: fmt::Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ValidationError> {
        if *self == Self::Absent {
            Ok(T::default())
        } else {
            self.required(parse)
        }
    }
}

/// Reads the parameters with these names from a query. Others are ignored.
pub(super) fn of_query<'a, const N: usize>(query: &'a str, names: [&str; N]) -> [Member<'a>; N] {
    let mut members = array::from_fn(|_| Member::Absent);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if let Some(index) = names.iter().position(|known| *known == name) {
            members[index].set(value);
        }
    }
    members
}

/// Reads the members with these names from a JSON object. Others are ignored.
pub(super) fn of_object<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> serde_json::Result<[Member<'a>; N]> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let members = deserializer.deserialize_map(ObjectVisitor(names))?;
    deserializer.end()?;
    Ok(members)
}

/// A visitor for the members with these names.
struct ObjectVisitor<'n, const N: usize>([&'n str; N]);

/// A name without a copy, unless it has escapes. Its bytes, because one with half of a surrogate pair is valid JSON.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, [u8]>);

impl<'de, const N: usize> Visitor<'de> for ObjectVisitor<'_, N> {
    type Value = [Member<'de>; N];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = array::from_fn(|_| Member::Absent);
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            if let Some(index) = self.0.iter().position(|known| known.as_bytes() == &*name) {
                members[index].set(value.get().into());
            }
        }
        Ok(members)
    }
}

/// Returns the problems of the members with these names, in this order.
pub(super) fn problems<const N: usize>(members: [(&str, Option<&ValidationError>); N]) -> String {
    let problem = |(name, error): (&str, Option<&ValidationError>)| {
        Some(format!("{name} {}", error?.message.as_ref()?))
    };
    members
        .into_iter()
        .filter_map(problem)
        .collect::<Vec<_>>()
        .join("; ")
}
