use animal_store_domain::{PageLimit, PetId};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

fn parse(body: &str) -> Result<NewPet, String> {
    from_slice(body.as_bytes(), Subject::RequestBody)
}

fn problems_of(body: &str) -> String {
    match parse(body) {
        Err(problems) => problems,
        Ok(pet) => panic!("{body} is {pet:?}"),
    }
}

#[test]
fn each_invalid_member_has_its_own_message() {
    let long_name = format!(r#""{}""#, "x".repeat(256));
    let half_pair = "name must be valid Unicode, without half of a surrogate pair";
    for (name, problem) in [
        (r#"" ""#, "name must not be blank"),
        (r#""a\u0000""#, "name must not contain control characters"),
        (r#""\ud800""#, half_pair),
        (r#""a\udfff\ud800b""#, half_pair),
        ("null", "name must be a string"),
        (&long_name, "name must have at most 255 characters"),
    ] {
        let body = format!(r#"{{"name":{name},"categoryId":1}}"#);
        assert_eq!(problems_of(&body), problem);
    }
    for category_id in ["null", r#""1""#, "1.5", "true", "[1]", "{}"] {
        let body = format!(r#"{{"name":"Rex","categoryId":{category_id}}}"#);
        assert_eq!(problems_of(&body), "categoryId must be a 64-bit integer");
    }
    let statuses = "status must be one of available, pending, sold";
    for (status, hint) in [
        (r#""""#, ""),
        (r#""Sold""#, ""),
        ("1", ""),
        (r#"["sold"]"#, ""),
        ("null", ", or left out"),
    ] {
        let body = format!(r#"{{"name":"Rex","categoryId":1,"status":{status}}}"#);
        assert_eq!(problems_of(&body), format!("{statuses}{hint}"));
    }
}

#[test]
fn every_invalid_member_is_named_in_one_message() {
    for (body, problems) in [
        (
            r#"{"status":"x","name":1}"#,
            "name must be a string; categoryId is required; status must be one of available, pending, sold",
        ),
        (
            r#"{"name":"Rex","n\u0061me":"Rex","categoryId":1,"categoryId":1,"status":"sold","status":"sold"}"#,
            "name must be given once; categoryId must be given once; status must be given once",
        ),
    ] {
        assert_eq!(problems_of(body), problems);
    }
}

#[test]
fn unknown_members_are_ignored_with_any_value() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let body = format!(
        r#"{{"id":7,"Name":1,"NAME":2,"category_id":"x","huge":1e9999,"deep":{deep},"half":"\ud800","\udc00":1,"\u0001":2,"":0,
           "owner":1,"owner":{{"name":1,"status":"x"}},"name":"Rex","categoryId":1,"status":"sold"}}"#
    );
    let expected = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(1))
        .with_status(Some(PetStatus::Sold));
    assert_eq!(parse(&body), Ok(expected));
}

#[test]
fn a_byte_order_mark_is_ignored_before_the_object_alone() {
    for spaces in ["", " \r\n"] {
        let body = format!("\u{feff}{spaces}{{\"name\":\"Rex\",\"categoryId\":1}}");
        assert!(parse(&body).is_ok(), "{body}");
    }
    for body in ["\u{feff}", "\u{feff}\u{feff}{}", " \u{feff}{}"] {
        assert!(problems_of(body).contains("valid JSON"), "{body}");
    }
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
        from_slice(b"{\"name\":1,}", Subject::Line).unwrap_err(),
        "the line must be valid JSON: error at column 11"
    );
}

#[test]
fn json_that_is_not_an_object_is_refused() {
    // A parser that reads members by position would accept an array.
    for body in ["[]", r#"["Rex",7,"sold"]"#, "null", "1", r#""name""#] {
        let expected = "the request body must be a JSON object";
        assert_eq!(problems_of(body), expected, "{body}");
    }
}

#[test]
fn text_that_is_almost_json_is_refused() {
    let deep = r#"{"a":"#.repeat(3000);
    for member in [
        r#""a":1,"#,
        r#""a":1 /* one */"#,
        r#""a":"\x52""#,
        r#""a":05"#,
        r#""a":Infinity"#,
        "'a':1",
        "} x",
        "\"a\n\":1",
        "\"a\u{1}\":1",
        "\"na\tme\":1",
        &deep,
    ] {
        let body = format!(r#"{{"name":"Rex","categoryId":7,{member}}}"#);
        let expected = "the request body must be valid JSON: error at line ";
        assert!(problems_of(&body).starts_with(expected), "{body}");
    }
    // Latin-1, a surrogate, NUL in two bytes, a byte of no encoding, UTF-16.
    for bytes in [
        &b"\"R\xe9x\""[..],
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\x80\"",
        b"1,\"\xff\":1",
        b"\"\0a\0\"",
        b"1,\"\0\":1",
    ] {
        let body = [b"{\"name\":\"Rex\",\"categoryId\":7,\"a\":", bytes, b"}"].concat();
        assert!(from_slice(&body, Subject::Line).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn every_valid_pet_is_parsed_exactly(name in "\\PC{0,300}", category_id in any::<i64>()) {
        let body = serde_json::json!({ "name": name, "categoryId": category_id }).to_string();
        match PetName::parse(&name) {
            Ok(name) => prop_assert_eq!(parse(&body), Ok(NewPet::new(name, CategoryId::new(category_id)))),
            Err(problem) => prop_assert_eq!(problems_of(&body), format!("name {problem}")),
        }
    }
}

/// The same members for a derived serialiser.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Derived {
    id: i64,
    name: String,
    category_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// The document with the memory of an instance.
const MEMORY: &str = include_str!("../../../../docs/operations/network.md");

/// A character of four bytes is the longest: a control character would have six, and no name has one.
#[test]
fn the_largest_page_fits_into_the_memory_of_a_request_in_flight() {
    let longest = |first: &&PetStatus| first.as_str().len();
    let status = PetStatus::ALL.iter().max_by_key(longest).copied();
    let name = PetName::parse(&"🦊".repeat(PetName::MAX_CHARS)).unwrap();
    let new_pet = NewPet::new(name, CategoryId::new(i64::MIN)).with_status(status);
    let pet = Pet::new(PetId::parse(i64::MAX).unwrap(), new_pet);
    let page = list_to_vec(&vec![pet; usize::from(PageLimit::MAX)]);

    let memory = MEMORY.split_whitespace().collect::<Vec<_>>().join(" ");
    let formula = memory.split_once(" KiB × http.max_in_flight").unwrap().0;
    let kibibytes = formula.rsplit(' ').next().unwrap().parse::<usize>();
    assert!(page.len() <= kibibytes.unwrap() * 1024, "{}", page.len());
    let size = format!("largest page, {} KiB", page.len().div_ceil(1024));
    assert!(memory.contains(&size), "{size}");
}

proptest! {
    #[test]
    fn the_members_are_those_of_a_derived_serialiser(
        rows in vec(
            (
                1..=i64::MAX,
                "\\PC{0,20}[a-z\"\\\\/é🐈]",
                any::<i64>(),
                option::of(select(&PetStatus::ALL[..])),
            ),
            0..4,
        )
    ) {
        let all = rows.iter().map(|(id, name, category, status)| {
            let new_pet = NewPet::new(PetName::parse(name).unwrap(), CategoryId::new(*category));
            Pet::new(PetId::parse(*id).unwrap(), new_pet.with_status(*status))
        });
        let derived = rows.iter().map(|(id, name, category_id, status)| Derived {
            id: *id, name: name.clone(), category_id: *category_id, status: status.map(PetStatus::as_str),
        });
        let all: Vec<_> = all.collect();
        let derived: Vec<_> = derived.collect();
        prop_assert_eq!(list_to_vec(&all), serde_json::to_vec(&derived).unwrap());
        for (one, derived) in all.iter().zip(&derived) {
            let json = serde_json::to_string(derived).unwrap();
            prop_assert_eq!(to_vec(one), json.as_bytes());
            prop_assert_eq!(to_line(one), format!("{json}\n").into_bytes());
        }
    }
}
