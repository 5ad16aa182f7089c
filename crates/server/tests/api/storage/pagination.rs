//! `listPets`: from page to page by the `next` links.

use crate::prelude::*;

/// The reference to the next page, which is relative to the path of the list.
#[track_caller]
fn next(response: &Response) -> Option<String> {
    let link = response.header("Link")?;
    let target = link.strip_prefix('<');
    let target = target.and_then(|link| link.strip_suffix(r#">; rel="next""#));
    let target = target.unwrap_or_else(|| panic!("{link} is no next link"));
    Some(target.to_owned())
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
        assert!(
            pages.last().is_none_or(|before| page > *before),
            "{page:?} follows {pages:?}"
        );
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
    for (query, expected) in [
        ("?limit=7", ids.chunks(7)),
        ("", ids.chunks(20)),
        ("?status=sold&limit=6", sold.chunks(6)),
    ] {
        let pages = pages(&app, query);
        assert!(pages.iter().eq(expected), "{query}: {pages:?}");
    }
}
