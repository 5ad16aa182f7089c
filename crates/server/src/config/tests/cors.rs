//! The key `http.cors_origins`. `adapters-http/src/cors/origin.rs` tests the parsing of origins.

use animal_store_adapters_http::AllowedOrigins;

use super::*;

fn origins(sources: &Sources) -> AllowedOrigins {
    Config::load(sources).unwrap().http.cors_origins
}

fn allowed(origins: &[&str]) -> AllowedOrigins {
    AllowedOrigins::These(origins.iter().map(|origin| origin.parse().unwrap()).collect())
}

fn variable(text: &str) -> Sources {
    environment(&[("ANIMAL_STORE_HTTP__CORS_ORIGINS", text)])
}

#[test]
fn origins_are_a_list_or_a_text_with_commas() {
    let expected = allowed(&["https://a.example", "https://b.example:8443"]);
    let (list, _file) = file("[http]\ncors_origins = ['https://a.example', '', 'https://b.example:8443']\n");
    for sources in [&list, &variable("https://a.example, https://b.example:8443 ,,")] {
        assert_eq!(origins(sources), expected);
        assert_eq!(origins(&variable(&shown(sources, "http.cors_origins"))), expected);
    }

    assert_eq!(origins(&variable("*")), AllowedOrigins::Any);
    for sources in [Sources::default(), variable(" , ,")] {
        assert_eq!(origins(&sources), allowed(&[]));
    }
}

#[test]
fn every_invalid_origin_is_an_error() {
    let key = "http.cors_origins (ANIMAL_STORE_HTTP__CORS_ORIGINS)";
    assert_eq!(
        errors(&variable("https://a.example,*,https://b.example/")),
        [
            format!("{key} must contain origins such as https://shop.example, not \"*\""),
            format!("{key} must contain \"https://b.example\", as browsers send it, not \"https://b.example/\""),
        ]
    );
    let (nested, file) = file("[http]\ncors_origins = [['https://a.example']]\n");
    let key = format!("http.cors_origins ({}, line 2)", file.path().display());
    assert_eq!(errors(&nested), [format!("{key} must be a list of texts")]);
}
