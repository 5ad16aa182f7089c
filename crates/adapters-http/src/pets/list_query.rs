//! The query of `listPets`. An invalid parameter is refused, never corrected. An unknown parameter is ignored.

use animal_store_domain::{ListQuery, PageLimit, PageLimitError};

use super::{cursor, digits, member::Member};
use crate::error::{ApiError, Problems};

pub(super) fn parse(query: &str) -> Result<ListQuery, ApiError> {
    let (mut limit, mut status, mut after) = (Member::optional(), Member::optional(), Member::optional());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "limit" => limit.set(parse_limit(&value)),
            "status" => status.set(value.parse().map(Some)),
            "cursor" => after.set(cursor::decode(&value)),
            _ => {}
        }
    }
    let mut problems = Problems::default();
    match (
        limit.take("limit", &mut problems),
        status.take("status", &mut problems),
        after.take("cursor", &mut problems),
    ) {
        (Some(limit), Some(status), Some(after)) => Ok(ListQuery { limit, status, after }),
        _ => Err(ApiError::InvalidQuery(problems)),
    }
}

fn parse_limit(text: &str) -> Result<PageLimit, PageLimitError> {
    let limit = digits::parse(text).and_then(|limit| u8::try_from(limit).ok()).ok_or(PageLimitError)?;
    PageLimit::parse(limit)
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
    fn without_parameters_the_query_selects_the_first_twenty_pets_of_every_status() {
        for query in ["", "&", "=", "x", "x=1&x=2", "Limit=5&STATUS=x", "limi=x&stat=y", "limit%20=0", "%FF"] {
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
            assert_eq!(problems(&format!("{name}=1&{name}=1")), format!("{name} must be given once"));
        }
        assert_eq!(problems("limit=5&x=1&%6Cimit=5"), "limit must be given once");
    }

    proptest! {
        #[test]
        fn no_query_causes_a_panic(query in any::<String>()) {
            let _ = parse(&query);
        }
    }
}
