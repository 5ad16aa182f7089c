//! The body of `createPet`: each member is parsed by the rules of the domain, and one message has all problems.

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus, PetStatusError};
use validator::{Validate, ValidationError};

use super::{
    members::{self, Member},
    numbers,
};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The members, in the order in which problems are reported.
const MEMBERS: [&str; 3] = ["name", "categoryId", "status"];

#[derive(Validate)]
#[expect(
    non_snake_case,
    reason = "`validator` reports fields by their names, which are those of the interface"
)]
struct NewPetRequest<'a> {
    #[validate(custom(function = "check_name"))]
    name: Member<'a>,
    #[validate(custom(function = "check_category_id"))]
    categoryId: Member<'a>,
    #[validate(custom(function = "check_status"))]
    status: Member<'a>,
}

/// What contains a pet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    RequestBody,
    Line,
}

impl Subject {
    fn invalid(self, problem: &str) -> String {
        let name = match self {
            Self::RequestBody => "the request body",
            Self::Line => "the line",
        };
        format!("{name} must be {problem}")
    }

    fn invalid_json(self, error: &serde_json::Error) -> String {
        let column = error.column();
        let place = match self {
            Self::RequestBody => format!("line {}, column {column}", error.line()),
            Self::Line => format!("column {column}"),
        };
        self.invalid(&format!("valid JSON: error at {place}"))
    }
}

/// Parses a request body or a line. A byte order mark before it is ignored (RFC 8259, section 8.1).
pub(super) fn parse(json: &[u8], subject: Subject) -> Result<NewPet, String> {
    let json = json.strip_prefix(BYTE_ORDER_MARK).unwrap_or(json);
    let text = str::from_utf8(json).map_err(|_| subject.invalid("JSON in UTF-8"))?;
    let [name, category_id, status] = members::of_object(text, MEMBERS).map_err(|error| {
        if error.is_data() {
            subject.invalid("a JSON object")
        } else {
            subject.invalid_json(&error)
        }
    })?;
    let request = NewPetRequest {
        name,
        categoryId: category_id,
        status,
    };
    request.validate().map_err(|errors| {
        let errors = errors.field_errors();
        members::problems(
            MEMBERS.map(|member| (member, errors.get(member).and_then(|errors| errors.first()))),
        )
    })?;
    Ok(request.new_pet().expect("every member is valid"))
}

impl NewPetRequest<'_> {
    fn new_pet(&self) -> Result<NewPet, ValidationError> {
        let new_pet = NewPet::new(
            parse_name(&self.name)?,
            parse_category_id(&self.categoryId)?,
        );
        Ok(new_pet.with_status(parse_status(&self.status)?))
    }
}

fn check_name(member: &Member) -> Result<(), ValidationError> {
    parse_name(member).map(drop)
}

fn check_category_id(member: &Member) -> Result<(), ValidationError> {
    parse_category_id(member).map(drop)
}

fn check_status(member: &Member) -> Result<(), ValidationError> {
    parse_status(member).map(drop)
}

fn parse_name(member: &Member) -> Result<PetName, ValidationError> {
    member.required(|json| {
        let text = parse_string(json).ok_or(if json.starts_with('"') {
            "must be valid Unicode, without half of a surrogate pair"
        } else {
            "must be a string"
        })?;
        PetName::parse(&text).map_err(|error| error.to_string())
    })
}

fn parse_category_id(member: &Member) -> Result<CategoryId, ValidationError> {
    member.required(|json| {
        numbers::parse_json(json)
            .map(CategoryId::new)
            .ok_or("must be a 64-bit integer")
    })
}

fn parse_status(member: &Member) -> Result<Option<PetStatus>, ValidationError> {
    member.optional(|json| {
        let status = parse_string(json).and_then(|status| status.parse().ok());
        status.map(Some).ok_or_else(|| match json {
            "null" => format!("{PetStatusError}, or left out"),
            _ => PetStatusError.to_string(),
        })
    })
}

fn parse_string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problems_of(body: &str) -> String {
        match parse(body.as_bytes(), Subject::RequestBody) {
            Err(problems) => problems,
            other => panic!("{body} is {other:?}"),
        }
    }

    #[test]
    fn every_invalid_member_is_named_in_one_message() {
        assert_eq!(
            problems_of(r#"{"name":1,"status":"x"}"#),
            "name must be a string; categoryId is required; status must be one of available, pending, sold"
        );
    }

    #[test]
    fn each_invalid_member_has_its_own_message() {
        for (name, problem) in [
            (r#"" ""#, "name must not be blank"),
            (r#""a\u0000""#, "name must not contain control characters"),
            (
                r#""\ud800""#,
                "name must be valid Unicode, without half of a surrogate pair",
            ),
            (
                r#""a\udfff\ud800b""#,
                "name must be valid Unicode, without half of a surrogate pair",
            ),
            ("null", "name must be a string"),
            (
                &format!(r#""{}""#, "x".repeat(256)),
                "name must have at most 255 characters",
            ),
        ] {
            assert_eq!(
                problems_of(&format!(r#"{{"name":{name},"categoryId":1}}"#)),
                problem
            );
        }
        for category_id in [
            "null",
            r#""1""#,
            "1.5",
            "9223372036854775808",
            "true",
            "[1]",
            "{}",
        ] {
            assert_eq!(
                problems_of(&format!(r#"{{"name":"Rex","categoryId":{category_id}}}"#)),
                "categoryId must be a 64-bit integer"
            );
        }
        for status in [r#""""#, r#""Sold""#, "1", "[]", r#"["sold"]"#] {
            assert_eq!(
                problems_of(&format!(
                    r#"{{"name":"Rex","categoryId":1,"status":{status}}}"#
                )),
                "status must be one of available, pending, sold"
            );
        }
    }

    #[test]
    fn the_message_about_a_status_of_null_says_that_the_member_may_be_left_out() {
        assert_eq!(
            problems_of(r#"{"name":"Rex","categoryId":1,"status":null}"#),
            "status must be one of available, pending, sold, or left out"
        );
    }

    #[test]
    fn a_byte_order_mark_is_ignored_before_the_object_alone() {
        for body in [
            "\u{feff}{\"name\":\"Rex\",\"categoryId\":1}",
            "\u{feff} \r\n{\"name\":\"Rex\",\"categoryId\":1}",
        ] {
            assert!(
                parse(body.as_bytes(), Subject::RequestBody).is_ok(),
                "{body}"
            );
        }
        assert_eq!(
            problems_of(" \u{feff}{}"),
            "the request body must be valid JSON: error at line 1, column 2"
        );
    }

    #[test]
    fn the_message_about_invalid_json_has_the_place() {
        for (body, place) in [
            ("", "line 1, column 0"),
            ("{name:1}", "line 1, column 2"),
            ("{\n  \"name\": 1,\n}", "line 3, column 1"),
            ("{}\n{}", "line 2, column 1"),
        ] {
            let expected = format!("the request body must be valid JSON: error at {place}");
            assert_eq!(problems_of(body), expected, "{body}");
        }
        assert_eq!(
            parse(b"{\"name\":1,}", Subject::Line).unwrap_err(),
            "the line must be valid JSON: error at column 11"
        );
    }

    #[test]
    fn a_member_given_twice_is_refused_even_if_its_name_is_escaped() {
        assert_eq!(
            problems_of(
                r#"{"name":"Rex","n\u0061me":"Rex","categoryId":1,"categoryId":1,"status":"sold","status":"sold"}"#
            ),
            "name must be given once; categoryId must be given once; status must be given once"
        );
    }

    #[test]
    fn unknown_members_are_ignored_with_any_value() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let body = format!(
            r#"{{"id":7,"Name":1,"NAME":2,"category_id":"x","huge":1e9999,"deep":{deep},"half":"\ud800","\udc00":1,"":0,
               "owner":1,"owner":{{"name":1,"status":"x"}},"name":"Rex","categoryId":1,"status":"sold"}}"#
        );
        let expected = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(1))
            .with_status(PetStatus::Sold);
        assert_eq!(
            parse(body.as_bytes(), Subject::RequestBody).unwrap(),
            expected
        );
    }

    #[test]
    fn a_body_that_is_not_an_object_and_one_that_is_not_json_have_different_messages() {
        // A parser that reads members by position would accept an array.
        for body in [
            "[]",
            r#"["Rex",7,"sold"]"#,
            "null",
            "1",
            r#""name""#,
            "true",
        ] {
            assert_eq!(
                problems_of(body),
                "the request body must be a JSON object",
                "{body}"
            );
        }
        let syntax = [
            "{",
            "{name:1}",
            r#"{"name":"Rex"} x"#,
            r#"{"name":NaN}"#,
            "",
            " ",
            "{'name':1}",
            "\u{feff}",
            "\u{feff}\u{feff}{}",
        ];
        let pets = [
            r#""a":1,"#,
            r#""a":1 /* one */"#,
            r#""a":"\x52""#,
            r#""a":05"#,
            r#""a":Infinity"#,
        ]
        .map(|last| format!(r#"{{"name":"Rex","categoryId":7,{last}}}"#));
        let deep = r#"{"a":"#.repeat(3000);
        for body in syntax
            .into_iter()
            .chain(pets.iter().map(String::as_str))
            .chain([&*deep])
        {
            let expected = "the request body must be valid JSON: error at line ";
            assert!(problems_of(body).starts_with(expected), "{body}");
        }
        // Latin-1, a surrogate, NUL in two bytes, a byte of no encoding, UTF-16.
        for bytes in [
            &b"\"R\xe9x\""[..],
            b"\"\xed\xa0\x80\"",
            b"\"\xc0\x80\"",
            b"1,\"\xff\":1",
            b"\"\0a\0\"",
        ] {
            let body = [b"{\"name\":\"Rex\",\"categoryId\":7,\"a\":", bytes, b"}"].concat();
            assert!(parse(&body, Subject::RequestBody).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_valid_pet_is_parsed_exactly(name in "\\PC{0,300}", category_id in any::<i64>()) {
            let body = serde_json::json!({ "name": name, "categoryId": category_id }).to_string();
            match PetName::parse(&name) {
                Ok(name) => {
                    let expected = NewPet::new(name, CategoryId::new(category_id));
                    prop_assert_eq!(parse(body.as_bytes(), Subject::RequestBody).unwrap(), expected);
                }
                Err(problem) => prop_assert_eq!(problems_of(&body), format!("name {problem}")),
            }
        }
    }
}
