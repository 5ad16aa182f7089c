//! The query of `listPets`. What is invalid is refused, never bent into shape; what is unknown is ignored.

use std::{borrow::Cow, fmt::Display};

use animal_store_domain::{ListQuery, PageLimit, PageLimitError};

use super::cursor;
use crate::{
    digits,
    error::{ApiError, Problems},
};

pub(super) fn parse(query: &str) -> Result<ListQuery, ApiError> {
    let (mut limits, mut statuses, mut cursors) = (Given::None, Given::None, Given::None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "limit" => limits.add(value),
            "status" => statuses.add(value),
            "cursor" => cursors.add(value),
            _ => {}
        }
    }
    let mut problems = Problems::default();
    let limit = limits.read("limit", parse_limit, &mut problems);
    let status = statuses.read("status", str::parse, &mut problems);
    let after = cursors.read("cursor", cursor::decode, &mut problems).flatten();
    if problems.is_empty() {
        Ok(ListQuery { limit: limit.unwrap_or_default(), status, after })
    } else {
        Err(ApiError::InvalidQuery(problems))
    }
}

fn parse_limit(text: &str) -> Result<PageLimit, PageLimitError> {
    let limit = digits::positive(text).and_then(|limit| u8::try_from(limit).ok()).ok_or(PageLimitError)?;
    PageLimit::parse(limit)
}

/// A parameter, as often as it was given.
enum Given<'a> {
    None,
    Once(Cow<'a, str>),
    Twice,
}

impl<'a> Given<'a> {
    fn add(&mut self, value: Cow<'a, str>) {
        *self = if matches!(self, Self::None) { Self::Once(value) } else { Self::Twice };
    }

    fn read<T, E: Display>(
        self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
        problems: &mut Problems,
    ) -> Option<T> {
        match self {
            Self::None => None,
            Self::Once(value) => parse(&value).map_err(|error| problems.push(name, &error)).ok(),
            Self::Twice => {
                problems.push(name, &"must be given once");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{PetId, PetStatus};
    use proptest::prelude::*;

    use super::*;

    fn problems(query: &str) -> String {
        match parse(query) {
            Err(ApiError::InvalidQuery(problems)) => problems.to_string(),
            other => panic!("{query} is {other:?}"),
        }
    }

    #[test]
    fn nothing_given_is_the_first_twenty_animals_of_every_status() {
        for query in ["", "&", "unknown=1", "Limit=5", "limi=x&stat=y"] {
            assert_eq!(parse(query).unwrap(), ListQuery::default(), "{query}");
        }
        assert_eq!(ListQuery::default().limit.get(), 20);
    }

    #[test]
    fn everything_given_is_everything_read() {
        let expected = ListQuery {
            limit: PageLimit::parse(100).unwrap(),
            status: Some(PetStatus::Pending),
            after: PetId::parse(1).ok(),
        };
        assert_eq!(parse("limit=100&status=pending&cursor=AAAAAAAAAAE").unwrap(), expected);
        assert_eq!(parse("cursor=AAAAAAAAAA%45&x=1&status=p%65nding&limit=%31%300").unwrap(), expected);
    }

    #[test]
    fn a_limit_is_plain_digits_from_1_to_100() {
        for limit in ["1", "20", "100"] {
            assert_eq!(parse(&format!("limit={limit}")).unwrap().limit.get().to_string(), limit);
        }
        for limit in ["", "0", "101", "256", "-1", "+5", "%2B5", "05", "5.0", "%205", "ten", "99999999999999999999"] {
            assert_eq!(problems(&format!("limit={limit}")), "limit must be a whole number from 1 to 100", "{limit}");
        }
    }

    #[test]
    fn every_problem_is_named_at_once() {
        assert_eq!(
            problems("limit=0&status=eaten&cursor=x"),
            "limit must be a whole number from 1 to 100; status must be one of available, pending, sold; \
             cursor must be taken from a next link"
        );
    }

    #[test]
    fn a_parameter_given_twice_is_refused_even_when_both_agree() {
        for name in ["limit", "status", "cursor"] {
            assert_eq!(problems(&format!("{name}=1&{name}=1")), format!("{name} must be given once"));
        }
    }

    proptest! {
        #[test]
        fn no_query_is_more_than_refused(query in any::<String>()) {
            let _ = parse(&query);
        }
    }
}
