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
fn following_the_links_returns_every_pet_exactly_once() {
    let app = TestApp::start();
    let ids = app.create_pets(101);

    for (query, limit) in [("?limit=3", 3), ("", 20), ("?limit=100", 100)] {
        let expected: Vec<_> = ids.chunks(limit).map(<[_]>::to_vec).collect();
        assert_eq!(pages(&app, &format!("/v1/pets{query}")), expected);
    }
    // A number of pets that the limit divides makes no empty page.
    assert_eq!(pages(&app, "/v1/pets?limit=1").len(), 101);
}

#[test]
fn following_the_links_of_a_filter_returns_every_pet_of_its_status_exactly_once() {
    let app = TestApp::start();
    let ids = app.create_pets(32);

    for (status, offset) in [("available", 1), ("pending", 2), ("sold", 3)] {
        let of_status: Vec<_> = ids.iter().copied().skip(offset).step_by(4).collect();
        for limit in [1, 3, 4, 100] {
            let expected: Vec<_> = of_status.chunks(limit).map(<[_]>::to_vec).collect();
            assert_eq!(pages(&app, &format!("/v1/pets?status={status}&limit={limit}")), expected);
        }
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

#[test]
fn the_cursor_of_the_last_page_finds_pets_created_later() {
    let app = TestApp::start();
    let ids = app.create_pets(4);
    let path = "/v1/pets?limit=3";
    let last = next(&app.get(path), path).expect("a next page");
    assert_eq!(app.get(&last).ids(), ids[3..]);

    let later = app.create_pet(None);

    assert_eq!(app.get(&last).ids(), [ids[3], later]);
}
