//! The query of `listPets`. An invalid parameter is refused, never corrected. An unknown parameter is ignored.

use std::fmt::Display;

use animal_store_domain::{ListQuery, PageLimit, PageLimitError, PetId};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use thiserror::Error;

use super::digits;

/// Parses a query. Fails with all problems of its parameters.
pub(crate) fn parse(query: &str) -> Result<ListQuery, String> {
    let mut parameters = Parameters {
        query,
        problems: Vec::new(),
    };
    let query = ListQuery {
        limit: parameters.parse("limit", parse_limit),
        status: parameters.parse("status", |text| text.parse().map(Some)),
        after: parameters.parse("cursor", decode_cursor),
    };
    if parameters.problems.is_empty() {
        Ok(query)
    } else {
        Err(parameters.problems.join("; "))
    }
}

struct Parameters<'a> {
    query: &'a str,
    problems: Vec<String>,
}

impl Parameters<'_> {
    /// Returns the value of a parameter, or the default if it is absent or has a problem.
    fn parse<T: Default, E: Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        let mut values = pairs.filter(|(other, _)| other == name);
        let Some((_, text)) = values.next() else {
            return T::default();
        };
        let problem = if values.next().is_some() {
            format!("{name} must be given once")
        } else {
            match parse(&text) {
                Ok(value) => return value,
                Err(error) => format!("{name} {error}"),
            }
        };
        self.problems.push(problem);
        T::default()
    }
}

fn parse_limit(text: &str) -> Result<PageLimit, PageLimitError> {
    let limit = digits::parse(text).ok_or(PageLimitError)?;
    PageLimit::parse(u8::try_from(limit).map_err(|_| PageLimitError)?)
}

/// Returns the position of a page in a list: the id before the first pet of the page, as 8 bytes in big-endian order,
/// in base64url without padding.
pub(crate) fn encode_cursor(after: PetId) -> String {
    URL_SAFE_NO_PAD.encode(after.get().to_be_bytes())
}

/// Returns the position. `None` is the start of the list.
pub(crate) fn decode_cursor(cursor: &str) -> Result<Option<PetId>, InvalidCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
    let bytes = bytes.try_into().map_err(|_| InvalidCursor)?;
    let position = i64::from_be_bytes(bytes);
    if position < 0 {
        Err(InvalidCursor)
    } else {
        Ok(PetId::parse(position).ok())
    }
}

#[derive(Debug, PartialEq, Eq, Error)]
#[error("must be taken from a next link")]
pub(crate) struct InvalidCursor;

#[cfg(test)]
mod tests {
    use animal_store_domain::PetStatus;
    use proptest::{prelude::*, string::string_regex};

    use super::*;
    use crate::openapi::tests::pattern;

    fn problems(query: &str) -> String {
        match parse(query) {
            Err(problems) => problems,
            other => panic!("{query} is {other:?}"),
        }
    }

    #[test]
    fn without_parameters_the_query_selects_the_first_twenty_pets_of_every_status() {
        for query in [
            "",
            "&",
            "=",
            "x",
            "x=1&x=2",
            "Limit=5&STATUS=x",
            "limi=x&stat=y",
            "limit%20=0",
            "%FF",
        ] {
            assert_eq!(parse(query).unwrap(), ListQuery::default(), "{query}");
        }
        assert_eq!(ListQuery::default().limit.get(), 20);
    }

    #[test]
    fn every_parameter_is_parsed() {
        let expected = ListQuery {
            limit: PageLimit::parse(100).unwrap(),
            status: Some(PetStatus::Pending),
            after: PetId::parse(1).ok(),
        };
        assert_eq!(
            parse("limit=100&status=pending&cursor=AAAAAAAAAAE").unwrap(),
            expected
        );
        assert_eq!(
            parse("cursor=AAAAAAAAAA%45&x=1&status=p%65nding&limit=%31%300").unwrap(),
            expected
        );
    }

    #[test]
    fn a_limit_is_plain_digits_from_1_to_100() {
        for limit in ["1", "20", "100"] {
            assert_eq!(
                parse(&format!("limit={limit}"))
                    .unwrap()
                    .limit
                    .get()
                    .to_string(),
                limit
            );
        }
        for limit in [
            "",
            "0",
            "101",
            "256",
            "-1",
            "+5",
            "%2B5",
            "05",
            "5.0",
            "%205",
            "ten",
            "99999999999999999999",
        ] {
            assert_eq!(
                problems(&format!("limit={limit}")),
                "limit must be a whole number from 1 to 100",
                "{limit}"
            );
        }
    }

    #[test]
    fn every_invalid_parameter_is_named_in_one_message() {
        assert_eq!(
            problems("limit=0&status=eaten&cursor=x"),
            "limit must be a whole number from 1 to 100; status must be one of available, pending, sold; \
             cursor must be taken from a next link"
        );
    }

    #[test]
    fn a_parameter_given_twice_is_refused_even_if_both_are_equal() {
        for name in ["limit", "status", "cursor"] {
            assert_eq!(
                problems(&format!("{name}=1&{name}=1")),
                format!("{name} must be given once")
            );
        }
        assert_eq!(
            problems("limit=5&x=1&%6Cimit=5"),
            "limit must be given once"
        );
    }

    /// The schema of `cursor` in `docs/openapi.json`.
    const CURSOR: &str = "/paths/~1pets/get/parameters/2/schema";

    proptest! {
        #[test]
        fn every_position_is_decoded_from_its_cursor(id in 1..=i64::MAX) {
            prop_assert_eq!(decode_cursor("AAAAAAAAAAA"), Ok(None), "the start of the list");
            let id = PetId::parse(id).unwrap();
            let cursor = encode_cursor(id);
            prop_assert_eq!(decode_cursor(&cursor), Ok(Some(id)));
        }

        #[test]
        fn every_text_of_the_pattern_is_valid(text in string_regex(pattern(CURSOR)).unwrap()) {
            prop_assert!(decode_cursor(&text).is_ok(), "{text:?}");
        }

        #[test]
        fn a_position_has_one_cursor(text in "[A-Za-z0-9_=-]{10}[AEIMQUYcgkosw048B9+/]{0,2}") {
            if let Ok(Some(position)) = decode_cursor(&text) {
                prop_assert_eq!(encode_cursor(position), text);
            }
        }
    }
}
