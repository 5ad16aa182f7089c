//! A pet as a JSON object.
//!
//! Like the body of `createPet`, it is read into the text of each member first, so that all problems of a line are
//! found. Members that a pet does not have are ignored.

use std::{borrow::Cow, fmt, io::Write};

use animal_store_app::ports::StoredPet;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    pet_record::{
        Member, PetRecord, REQUIRED, parse_category_id, parse_created_at, parse_id, parse_name, parse_status,
    },
    time,
};

/// Appends a pet and the end of the line. A pet without a status has no `status` member.
pub(crate) fn write(json: &mut Vec<u8>, stored: &StoredPet) {
    let new_pet = stored.pet.new_pet();
    json.extend_from_slice(br#"{"id":"#);
    write_value(json, &stored.pet.id().get());
    json.extend_from_slice(br#","name":"#);
    write_value(json, new_pet.name().as_str());
    json.extend_from_slice(br#","categoryId":"#);
    write_value(json, &new_pet.category_id().get());
    if let Some(status) = new_pet.status() {
        json.extend_from_slice(br#","status":"#);
        write_value(json, status.as_str());
    }
    let created_at = time::format_creation_time(stored.created_at);
    writeln!(json, r#","createdAt":"{created_at}"}}"#).expect("a vector grows");
}

fn write_value(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(json, value).expect("a text or a number");
}

/// Parses a line.
///
/// # Errors
/// If the line is not a JSON object.
pub(crate) fn parse(line: &[u8]) -> Result<PetRecord, &'static str> {
    let line = str::from_utf8(line).map_err(|_| "the line must be JSON in UTF-8")?;
    let PetMembers([id, name, category_id, status, created_at]) = serde_json::from_str(line).map_err(|error| {
        if error.is_data() { "the line must be a JSON object" } else { "the line must be valid JSON" }
    })?;
    Ok(PetRecord {
        id: id.parse(Err(REQUIRED), |json| parse_id(integer(json))),
        name: name.parse(Err(REQUIRED), |json| parse_name(text(json).as_deref())),
        category_id: category_id.parse(Err(REQUIRED), |json| parse_category_id(integer(json))),
        status: status.parse(Ok(None), |json| parse_status(text(json).as_deref())),
        created_at: created_at.parse(Ok(None), |json| parse_created_at(text(json).as_deref())),
    })
}

fn integer(json: &RawValue) -> Option<i64> {
    serde_json::from_str(json.get()).ok()
}

fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    let borrowed = serde_json::from_str(json.get()).map(Cow::Borrowed);
    borrowed.or_else(|_| serde_json::from_str(json.get()).map(Cow::Owned)).ok()
}

/// The text of each member of [`MemberName`].
struct PetMembers<'a>([RawMember<'a>; 5]);

#[derive(Clone, Copy, Default)]
enum RawMember<'a> {
    #[default]
    Absent,
    Once(&'a RawValue),
    Twice,
}

impl RawMember<'_> {
    fn parse<T>(self, absent: Member<T>, parse: impl FnOnce(&RawValue) -> Member<T>) -> Member<T> {
        match self {
            Self::Absent => absent,
            Self::Once(json) => parse(json),
            Self::Twice => Err("must be given once".into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MemberName {
    Id,
    Name,
    CategoryId,
    Status,
    CreatedAt,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for PetMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PetVisitor)
    }
}

struct PetVisitor;

impl<'de> Visitor<'de> for PetVisitor {
    type Value = PetMembers<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PetMembers<'de>, A::Error> {
        let mut members = [RawMember::default(); 5];
        while let Some(name) = map.next_key()? {
            if let MemberName::Unknown = name {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let member = &mut members[name as usize];
            let json = map.next_value()?;
            *member = if let RawMember::Absent = member { RawMember::Once(json) } else { RawMember::Twice };
        }
        Ok(PetMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(line: &str) -> String {
        match parse(line.as_bytes()) {
            Ok(record) => record.into_bulk_pet(true, None).expect_err("a problem"),
            Err(problem) => problem.to_owned(),
        }
    }

    #[test]
    fn every_problem_of_a_line_is_named() {
        assert_eq!(
            problems(r#"{"id":0,"name":1,"status":"x","createdAt":5}"#),
            "id must be a 64-bit integer of 1 or greater; name must be a string; categoryId is required; \
             status must be one of available, pending, sold; \
             createdAt must be a time in UTC such as 2026-11-22T17:00:00.123456Z"
        );
    }

    #[test]
    fn each_invalid_line_has_its_own_message() {
        for (line, problem) in [
            ("{", "the line must be valid JSON"),
            ("{} {}", "the line must be valid JSON"),
            ("[]", "the line must be a JSON object"),
            (r#"{"id":1,"id":1,"name":"a","categoryId":1}"#, "id must be given once"),
            (r#"{"id":1,"name":"","categoryId":1}"#, "name must not be blank"),
            (r#"{"id":1,"name":"a","categoryId":1.5}"#, "categoryId must be a 64-bit integer"),
            (r#"{"id":1,"name":"a","categoryId":null}"#, "categoryId must be a 64-bit integer"),
            (r#"{"id":"1","name":"a","categoryId":1}"#, "id must be a 64-bit integer of 1 or greater"),
            (r#"{"id":1,"name":"a","categoryId":1,"status":null}"#, "status must be one of available, pending, sold"),
        ] {
            assert_eq!(problems(line), problem, "{line}");
        }
        assert_eq!(parse(b"{\"name\":\"\xff\"}").expect_err("not UTF-8"), "the line must be JSON in UTF-8");
    }

    /// It can be the id of a pet in a backup, which is restored as it is.
    #[test]
    fn an_id_that_leaves_no_ids_for_other_pets_is_not_imported() {
        let line = |id: i64| format!(r#"{{"id":{id},"name":"a","categoryId":1,"createdAt":"2026-11-22T17:00:00Z"}}"#);
        let greatest = i64::MAX - (1 << 32);
        let problem = format!("id must be at most {greatest}: no ids would be left for other pets");
        for id in [greatest + 1, i64::MAX] {
            assert_eq!(problems(&line(id)), problem);
            let stored = parse(line(id).as_bytes()).unwrap().stored_pet();
            assert_eq!(stored.map(|stored| stored.pet.id().get()), Some(id));
        }
        let accepted = parse(line(greatest).as_bytes()).unwrap().into_bulk_pet(true, None).unwrap();
        assert_eq!(accepted.id.map(animal_store_domain::PetId::get), Some(greatest));
    }

    #[test]
    fn unknown_members_and_escapes_are_accepted() {
        let record = parse(br#" {"other":{"name":[]},"n\u0061me":"R\u0065x","categoryId":-1} "#).unwrap();
        let pet = record.into_bulk_pet(false, None).unwrap();
        assert_eq!((pet.pet.name().as_str(), pet.pet.category_id().get()), ("Rex", -1));
    }

    #[test]
    fn an_id_is_required_only_if_ids_are_kept() {
        let line = br#"{"name":"Rex","categoryId":1}"#;
        assert_eq!(parse(line).unwrap().into_bulk_pet(true, None), Err("id is required".to_owned()));
        let pet = parse(br#"{"id":false,"name":"Rex","categoryId":1}"#).unwrap().into_bulk_pet(false, None).unwrap();
        assert_eq!((pet.id, pet.created_at), (None, None));
    }
}
