//! The section `traces`.

use super::*;

fn endpoint(text: &str) -> Sources {
    environment(&[("ANIMAL_STORE_TRACES__ENDPOINT", text)])
}

#[test]
fn traces_are_off_without_an_endpoint() {
    assert_eq!(Config::load(&Sources::default()).unwrap().traces.sampled(), None);
    assert_eq!(
        Config::load(&environment(&[("ANIMAL_STORE_TRACES__SAMPLE_RATIO", "1")])).unwrap().traces.sampled(),
        None
    );
}

#[test]
fn with_an_endpoint_one_in_a_hundred_requests_is_traced() {
    for url in ["http://127.0.0.1:4318/v1/traces", "https://collector.example"] {
        assert_eq!(Config::load(&endpoint(url)).unwrap().traces.sampled(), Some(0.01));
    }
}

#[test]
fn an_endpoint_that_can_contain_a_secret_is_refused() {
    for url in ["localhost:4318", "ftp://a/", "http://user@a/", "http://:password@a/", "http://a/?key=b", "http://a/#b"]
    {
        let errors = errors(&endpoint(url));
        assert!(matches!(&errors[..], [error] if error.contains("must be a URL such as http://")), "{errors:?}");
    }
}

#[test]
fn a_ratio_is_a_number_from_0_to_1() {
    for ratio in ["-0.1", "1.1", "NaN", "half", ""] {
        let errors = errors(&environment(&[("ANIMAL_STORE_TRACES__SAMPLE_RATIO", ratio)]));
        assert!(matches!(&errors[..], [error] if error.contains("must be a number from 0 to 1")), "{errors:?}");
    }
}
