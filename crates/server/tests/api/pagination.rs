//! `listPets`: from page to page by the `next` links.

use std::thread;

use crate::{client::Response, link, test_app::TestApp};

/// Where the next page is, as the client that asked for `path` has to ask.
#[track_caller]
fn next(response: &Response, path: &str) -> Option<String> {
    link::target(response, "next").map(|reference| link::resolve(path, &reference))
}

/// Follows every link from `path` on. Before each one, `meanwhile` is called. Returns the ids of each page.
#[track_caller]
fn pages(app: &TestApp, path: &str, mut meanwhile: impl FnMut()) -> Vec<Vec<i64>> {
    let mut pages: Vec<Vec<i64>> = Vec::new();
    let mut path = Some(path.to_owned());
    while let Some(current) = path {
        let response = app.get(&current);
        let page = response.ids();
        // Links that lead in a circle would be followed for ever.
        assert!(pages.last().is_none_or(|before| page > *before), "{page:?} follows {pages:?}");
        pages.push(page);
        path = next(&response, &current);
        meanwhile();
    }
    pages
}

/// What a list of these animals must hold, where they were added in turns of none and of each status.
fn of_status(ids: &[i64], turn: usize) -> Vec<i64> {
    ids.iter().copied().skip(turn).step_by(4).collect()
}

#[test]
fn the_link_is_relative_and_repeats_the_query() {
    let app = TestApp::start();
    app.add_many(84);

    for (query, start) in [
        ("", "?limit=20&cursor="),
        ("?limit=7", "?limit=7&cursor="),
        ("?status=sold", "?limit=20&status=sold&cursor="),
        ("?status=pending&limit=1", "?limit=1&status=pending&cursor="),
        ("?x=1&limit=5", "?limit=5&cursor="),
    ] {
        let target = link::target(&app.get(&format!("/v1/pets{query}")), "next").expect("a next page");
        let cursor = target.strip_prefix(start).unwrap_or_else(|| panic!("{target} for {query}"));
        assert!(!cursor.is_empty());
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cursor}");
    }
}

#[test]
fn the_last_page_has_no_link() {
    let app = TestApp::start();
    app.add_many(8);

    for (query, more) in [
        ("limit=7", true),
        ("limit=8", false),
        ("limit=9", false),
        ("limit=1&status=sold", true),
        ("limit=2&status=sold", false),
        ("limit=3&status=sold", false),
    ] {
        let path = format!("/v1/pets?{query}");
        assert_eq!(next(&app.get(&path), &path).is_some(), more, "{query}");
    }
}

#[test]
fn following_the_links_gives_every_animal_exactly_once() {
    let app = TestApp::start();
    let ids = app.add_many(205);

    for limit in [1, 7, 100] {
        let expected: Vec<_> = ids.chunks(limit).map(<[_]>::to_vec).collect();
        assert_eq!(pages(&app, &format!("/v1/pets?limit={limit}"), || {}), expected);
    }
    let expected: Vec<_> = ids.chunks(20).map(<[_]>::to_vec).collect();
    assert_eq!(pages(&app, "/v1/pets", || {}), expected);
}

#[test]
fn following_the_links_of_a_filter_gives_every_animal_of_its_status_exactly_once() {
    let app = TestApp::start();
    let ids = app.add_many(416);

    for (status, turn) in [("available", 1), ("pending", 2), ("sold", 3)] {
        for limit in [1, 7, 100] {
            let expected: Vec<_> = of_status(&ids, turn).chunks(limit).map(<[_]>::to_vec).collect();
            assert_eq!(pages(&app, &format!("/v1/pets?status={status}&limit={limit}"), || {}), expected);
        }
    }
}

#[test]
fn a_number_of_animals_that_the_limit_divides_makes_no_empty_page() {
    let app = TestApp::start();
    let ids = app.add_many(8);

    assert_eq!(pages(&app, "/v1/pets?limit=4", || {}), [&ids[..4], &ids[4..]]);
}

#[test]
fn animals_added_between_pages_disturb_nothing() {
    for limit in [1, 7, 100] {
        let app = TestApp::start();
        let ids = app.add_many(limit * 3 / 2 + 2);
        let mut added = Vec::new();

        let pages = pages(&app, &format!("/v1/pets?limit={limit}"), || {
            if added.len() < 4 {
                added.push(app.add(None));
            }
        });

        // Nobody else adds: the later animals that could be seen are those at the end, once each.
        let seen = pages.concat();
        assert_eq!(seen[..ids.len()], ids);
        assert_eq!(seen[ids.len()..], added[..seen.len() - ids.len()]);
    }
}

#[test]
fn animals_added_between_the_pages_of_a_filter_disturb_nothing() {
    for limit in [1, 7, 100] {
        let app = TestApp::start();
        let ids = of_status(&app.add_many(limit * 6 + 8), 2);
        let mut added = Vec::new();

        let pages = pages(&app, &format!("/v1/pets?limit={limit}&status=pending"), || {
            if added.len() < 4 {
                app.add(Some("sold"));
                added.push(app.add(Some("pending")));
            }
        });

        let seen = pages.concat();
        assert_eq!(seen[..ids.len()], ids);
        assert_eq!(seen[ids.len()..], added[..seen.len() - ids.len()]);
    }
}

#[test]
fn animals_added_at_the_same_time_disturb_nothing() {
    let app = TestApp::start();
    let ids = app.add_many(60);

    let seen = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| app.add_many(40));
        }
        pages(&app, "/v1/pets?limit=7", || {}).concat()
    });

    assert_eq!(seen[..ids.len()], ids);
    assert!(seen.is_sorted_by(|left, right| left < right), "{seen:?}");
    let all = pages(&app, "/v1/pets?limit=100", || {}).concat();
    assert_eq!(all.len(), 140);
    assert!(seen.iter().all(|id| all.contains(id)));
}

#[test]
fn a_link_may_be_followed_again_and_by_another_client() {
    let app = TestApp::start();
    let ids = app.add_many(9);
    let path = next(&app.get("/v1/pets?limit=3"), "/v1/pets?limit=3").expect("a next page");

    assert_eq!(app.get(&path).ids(), ids[3..6]);
    assert_eq!(app.get(&path).ids(), ids[3..6]);
    let other = app.anonymous("GET", &path).header("Authorization", "Bearer test-token-2").send();
    assert_eq!(other.ids(), ids[3..6]);
}

#[test]
fn a_cursor_is_a_position_and_goes_with_any_limit_and_filter() {
    let app = TestApp::start();
    let ids = app.add_many(12);
    let target = link::target(&app.get("/v1/pets?limit=4"), "next").expect("a next page");
    let (_, cursor) = target.split_once("cursor=").expect("a cursor");

    assert_eq!(app.get(&format!("/v1/pets?cursor={cursor}")).ids(), ids[4..]);
    assert_eq!(app.get(&format!("/v1/pets?cursor={cursor}&limit=2")).ids(), ids[4..6]);
    assert_eq!(app.get(&format!("/v1/pets?status=sold&cursor={cursor}")).ids(), [ids[7], ids[11]]);
}

#[test]
fn a_cursor_at_the_end_finds_what_is_added_after_it() {
    let app = TestApp::start();
    let ids = app.add_many(4);
    let path = "/v1/pets?limit=3";
    let beyond = next(&app.get(path), path).expect("a next page");
    assert_eq!(app.get(&beyond).ids(), ids[3..]);

    let later = app.add(None);

    assert_eq!(app.get(&beyond).ids(), [ids[3], later]);
}
