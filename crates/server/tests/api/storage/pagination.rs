//! `listPets`: from page to page by the `next` links.

use animal_store_test_servers::Response;

use crate::test_app::TestApp;

/// The reference to the next page, which is relative to the path of the list.
#[track_caller]
fn next(response: &Response) -> Option<String> {
    let link = response.header("Link")?;
    let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(r#">; rel="next""#));
    Some(target.unwrap_or_else(|| panic!("{link} is no next link")).to_owned())
}

/// Follows every link from this query on. Returns the ids of each page.
#[track_caller]
fn pages(app: &TestApp, query: &str) -> Vec<Vec<i64>> {
    let mut pages: Vec<Vec<i64>> = Vec::new();
    let mut reference = Some(query.to_owned());
    while let Some(query) = reference {
        assert!(query.is_empty() || query.starts_with('?'), "{query}");
        let response = app.get(&format!("/v1/pets{query}"));
        let page = response.ids();
        // Links in a circle would never end.
        assert!(pages.last().is_none_or(|before| page > *before), "{page:?} follows {pages:?}");
        pages.push(page);
        reference = next(&response);
    }
    pages
}

#[test]
fn following_the_links_returns_every_pet_of_the_filter_exactly_once() {
    let app = TestApp::start();
    let ids = app.create_pets(60);
    let sold: Vec<_> = ids.iter().copied().skip(2).step_by(3).collect();

    // A number of pets that the limit divides makes no empty page.
    for (query, expected) in
        [("?limit=7", ids.chunks(7)), ("", ids.chunks(20)), ("?status=sold&limit=6", sold.chunks(6))]
    {
        assert_eq!(pages(&app, query), expected.map(<[_]>::to_vec).collect::<Vec<_>>());
    }
}

#[test]
fn a_cursor_is_a_position_and_valid_with_any_limit_and_filter() {
    let app = TestApp::start();
    let ids = app.create_pets(12);
    let target = next(&app.get("/v1/pets?limit=4")).expect("a next page");
    let (_, cursor) = target.split_once("cursor=").expect("a cursor");

    assert_eq!(app.get(&format!("/v1/pets?cursor={cursor}")).ids(), ids[4..]);
    assert_eq!(app.get(&format!("/v1/pets?status=sold&cursor={cursor}&limit=2")).ids(), [ids[5], ids[8]]);
    // The positions before the first pet and after the last possible one.
    assert_eq!(app.get("/v1/pets?cursor=AAAAAAAAAAA").ids(), ids);
    assert_eq!(app.get("/v1/pets?cursor=f_________8").text(), "[]");
}
