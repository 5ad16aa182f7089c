//! `listPets`: from page to page by the `next` links.

use animal_store_test_servers::Response;

use crate::{link, test_app::TestApp};

/// The path of the next page, as resolved by a client that requested `path`.
#[track_caller]
fn next(response: &Response, path: &str) -> Option<String> {
    link::target(response, "next").map(|reference| link::resolve(path, &reference))
}

/// Follows every link from `path` on. Returns the ids of each page.
#[track_caller]
fn pages(app: &TestApp, path: &str) -> Vec<Vec<i64>> {
    let mut pages: Vec<Vec<i64>> = Vec::new();
    let mut path = Some(path.to_owned());
    while let Some(current) = path {
        let response = app.get(&current);
        let page = response.ids();
        // Links in a circle would never end.
        assert!(pages.last().is_none_or(|before| page > *before), "{page:?} follows {pages:?}");
        pages.push(page);
        path = next(&response, &current);
    }
    pages
}

#[test]
fn following_the_links_returns_every_pet_of_the_filter_exactly_once() {
    let app = TestApp::start();
    let ids = app.create_pets(101);
    let sold: Vec<_> = ids.iter().copied().skip(3).step_by(4).collect();

    // A number of pets that the limit divides makes no empty page.
    for (query, expected) in [
        ("?limit=3", ids.chunks(3)),
        ("", ids.chunks(20)),
        ("?limit=100", ids.chunks(100)),
        ("?limit=1", ids.chunks(1)),
        ("?status=sold&limit=5", sold.chunks(5)),
    ] {
        assert_eq!(pages(&app, &format!("/v1/pets{query}")), expected.map(<[_]>::to_vec).collect::<Vec<_>>());
    }
}

#[test]
fn a_cursor_is_a_position_and_valid_with_any_limit_and_filter() {
    let app = TestApp::start();
    let ids = app.create_pets(12);
    let target = link::target(&app.get("/v1/pets?limit=4"), "next").expect("a next page");
    let (_, cursor) = target.split_once("cursor=").expect("a cursor");

    assert_eq!(app.get(&format!("/v1/pets?cursor={cursor}")).ids(), ids[4..]);
    assert_eq!(app.get(&format!("/v1/pets?cursor={cursor}&limit=2")).ids(), ids[4..6]);
    assert_eq!(app.get(&format!("/v1/pets?status=sold&cursor={cursor}")).ids(), [ids[7], ids[11]]);
    // The position before the first pet.
    assert_eq!(app.get("/v1/pets?cursor=AAAAAAAAAAA").ids(), ids);
}
