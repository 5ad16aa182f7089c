//! `http.cors_origins`: whose pages may use the interface.

use animal_store_adapters_http::AllowedOrigins;

use super::*;

const KEY: &str = "http.cors_origins (ANIMAL_STORE_HTTP__CORS_ORIGINS)";

fn variable(text: &str) -> Sources {
    environment(&[("ANIMAL_STORE_HTTP__CORS_ORIGINS", text)])
}

fn origins(sources: &Sources) -> AllowedOrigins {
    Config::load(sources).unwrap().http.cors_origins
}

fn these(texts: &[&str]) -> AllowedOrigins {
    AllowedOrigins::These(texts.iter().map(|text| text.parse().unwrap()).collect())
}

/// What `check-config` shows.
fn shown(sources: &Sources) -> String {
    let (_, value) = Config::effective(sources).into_iter().find(|(key, _)| key.name == "http.cors_origins").unwrap();
    value
}

#[test]
fn no_origin_is_allowed_unless_one_is_named() {
    assert_eq!(origins(&Sources::default()), these(&[]));
    assert_eq!(shown(&Sources::default()), "");
    for text in ["", " ", ",", " , ,, "] {
        assert_eq!(origins(&variable(text)), these(&[]), "{text:?}");
    }
    for text in ["[]", "''", "['']", "[' ', ',']"] {
        let (list, _file) = file(&format!("[http]\ncors_origins = {text}\n"));
        assert_eq!(origins(&list), these(&[]), "{text}");
    }
}

#[test]
fn origins_may_stand_in_a_text_with_commas_or_in_a_list() {
    let expected = these(&["https://shop.example", "http://[::1]:3000", "https://xn--bcher-kva.example"]);
    let text = "https://shop.example, http://[::1]:3000 ,,https://xn--bcher-kva.example,";

    assert_eq!(origins(&variable(text)), expected);
    let flag = Sources { flags: vec![("http.cors_origins".into(), text.into())], ..Sources::default() };
    assert_eq!(origins(&flag), expected);
    for list in [
        format!("'{text}'"),
        format!("['{text}']"),
        "['https://shop.example', 'http://[::1]:3000', 'https://xn--bcher-kva.example']".to_owned(),
        "['https://shop.example ,http://[::1]:3000', '', ' https://xn--bcher-kva.example ']".to_owned(),
    ] {
        let (list, _file) = file(&format!("[http]\ncors_origins = {list}\n"));
        assert_eq!(origins(&list), expected);
    }
}

#[test]
fn what_comes_later_takes_the_place_of_a_whole_list() {
    let (mut sources, _file) = file("[http]\ncors_origins = ['https://a.example', 'https://b.example']\n");
    assert_eq!(origins(&sources), these(&["https://a.example", "https://b.example"]));

    sources.environment = vec![("ANIMAL_STORE_HTTP__CORS_ORIGINS".into(), "https://c.example".into())];
    assert_eq!(origins(&sources), these(&["https://c.example"]));

    sources.flags = vec![("http.cors_origins".into(), String::new())];
    assert_eq!(origins(&sources), these(&[]));
}

#[test]
fn a_star_stands_alone() {
    let (list, _file) = file("[http]\ncors_origins = ['*']\n");
    for sources in [variable("*"), variable(" *, "), list] {
        assert_eq!(origins(&sources), AllowedOrigins::Any);
    }

    let problem = format!("{KEY} must hold origins such as https://shop.example, not \"*\"");
    for text in ["*,https://shop.example", "https://shop.example, *"] {
        assert_eq!(problems(&variable(text)), [problem.as_str()]);
    }
    assert_eq!(problems(&variable("*,*")), [problem.as_str(), &problem]);
}

#[test]
fn what_is_no_origin_is_a_problem() {
    for text in ["null", "shop.example", "https://*.shop.example", "5"] {
        let problem = format!("{KEY} must hold origins such as https://shop.example, not {text:?}");
        assert_eq!(problems(&variable(text)), [problem]);
    }
}

#[test]
fn an_origin_that_browsers_write_otherwise_is_a_problem_that_says_how() {
    for (text, written) in
        [("https://shop.example/", "https://shop.example"), ("http://SHOP.example:80", "http://shop.example")]
    {
        let problem = format!("{KEY} must hold {written:?}, as browsers write it, not {text:?}");
        assert_eq!(problems(&variable(text)), [problem]);
        assert_eq!(origins(&variable(written)), these(&[written]));
    }
}

#[test]
fn every_origin_that_is_wrong_is_told_among_those_that_are_right() {
    let [first, second] = &problems(&variable("https://a.example,null,https://b.example,https://c.example/"))[..]
    else {
        panic!("two problems")
    };
    assert!(first.ends_with("not \"null\""), "{first}");
    assert!(second.ends_with("not \"https://c.example/\""), "{second}");
}

#[test]
fn numbers_and_other_things_in_a_list_are_problems() {
    for (list, problem) in [
        ("5", "must hold origins such as https://shop.example, not \"5\""),
        ("[5]", "must hold origins such as https://shop.example, not \"5\""),
        ("['https://shop.example', true]", "must hold origins such as https://shop.example, not \"true\""),
        ("[['https://shop.example']]", "must be a list of texts"),
        ("[{ origin = 'https://shop.example' }]", "must be a list of texts"),
    ] {
        let (sources, _file) = file(&format!("[http]\ncors_origins = {list}\n"));
        assert_eq!(problems(&sources), [format!("{KEY} {problem}")], "{list}");
    }
    let (table, file) = file("[http.cors_origins]\nshop = 'https://shop.example'\n");
    assert_eq!(problems(&table), [format!("{}: http.cors_origins.shop is unknown", file.path().display())]);
}

#[test]
fn a_list_is_shown_as_the_text_that_could_stand_for_it() {
    let (list, _file) = file("[http]\ncors_origins = ['https://a.example', 'https://b.example:8443']\n");
    assert_eq!(shown(&list), "https://a.example,https://b.example:8443");
    assert_eq!(origins(&variable(&shown(&list))), origins(&list));

    assert_eq!(shown(&variable("*")), "*");
    let (empty, _file) = file("[http]\ncors_origins = []\n");
    assert_eq!(shown(&empty), "");
}
