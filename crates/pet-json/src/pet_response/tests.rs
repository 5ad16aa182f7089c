use animal_store_domain::{CategoryId, NewPet, PageLimit, PetId, PetName, PetStatus};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

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

    let formula = MEMORY.split_once(" KiB × http.max_in_flight").unwrap().0;
    let kibibytes = formula.rsplit(' ').next().unwrap().parse::<usize>();
    assert!(page.len() <= kibibytes.unwrap() * 1024, "{}", page.len());
    let size = format!("largest page, {} KiB", page.len().div_ceil(1024));
    assert!(MEMORY.contains(&size), "{size}");
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
        let (all, derived) = (all.collect::<Vec<_>>(), derived.collect::<Vec<_>>());
        prop_assert_eq!(list_to_vec(&all), serde_json::to_vec(&derived).unwrap());
        for (one, derived) in all.iter().zip(&derived) {
            prop_assert_eq!(to_vec(one), serde_json::to_vec(derived).unwrap());
        }
    }
}
