//! The keys `http.rate_limit.…`, `http.auth_failures.per_minute` and `http.deprecated_get`.

use super::*;

const PER_SECOND: &str = "ANIMAL_STORE_HTTP__RATE_LIMIT__PER_SECOND";
const BURST: &str = "ANIMAL_STORE_HTTP__RATE_LIMIT__BURST";
const PER_MINUTE: &str = "ANIMAL_STORE_HTTP__AUTH_FAILURES__PER_MINUTE";

#[test]
fn the_burst_is_the_rate_by_default_and_no_rate_is_limited_by_default() {
    for (variables, expected) in [
        (&[][..], None),
        (&[(PER_SECOND, ""), (BURST, "")], None),
        (&[(PER_SECOND, "100")], Some((100, 100))),
        (&[(PER_SECOND, "1"), (BURST, "1000000")], Some((1, 1_000_000))),
        (&[(PER_SECOND, "1000000"), (BURST, "1")], Some((1_000_000, 1))),
    ] {
        let limit = Config::load(&environment(variables)).unwrap().http.limits.rate_limit;
        let found = limit.map(|limit| (limit.per_second.get(), limit.burst.get()));
        assert_eq!(found, expected, "{variables:?}");
    }
}

#[test]
fn the_keys_of_the_rate_are_a_table_of_the_file() {
    let (sources, _file) =
        file("[http.rate_limit]\nper_second = 5\nburst = 10\n\n[http]\nauth_failures.per_minute = 7\n");
    let limits = Config::load(&sources).unwrap().http.limits;
    assert_eq!(limits.rate_limit.map(|limit| (limit.per_second.get(), limit.burst.get())), Some((5, 10)));
    assert_eq!(limits.max_auth_failures_per_minute.map(u32::from), Some(7));
}

#[test]
fn a_burst_requires_a_rate() {
    let error = "http.rate_limit.burst (ANIMAL_STORE_HTTP__RATE_LIMIT__BURST) requires http.rate_limit.per_second";
    assert_eq!(errors(&environment(&[(BURST, "10")])), [error]);
}

#[test]
fn a_limit_is_a_whole_number_from_1_to_1000000() {
    for variable in [PER_SECOND, BURST, PER_MINUTE] {
        for value in ["0", "1000001", "-1", "0.5", "10/s", "off"] {
            let variables = [(PER_SECOND, "1"), (variable, value)];
            let variables = &variables[usize::from(variable == PER_SECOND)..];
            let [error] = &errors(&environment(variables))[..] else { panic!("{variable} {value}") };
            let rule = format!("({variable}) must be a whole number from 1 to 1000000, not {value:?}");
            assert!(error.ends_with(&rule), "{error}");
        }
    }
}

#[test]
fn the_deprecated_operation_is_served_unless_it_is_gone() {
    let served = |variables: &[_]| Config::load(&environment(variables)).map(|config| config.http.serves_get_pet);
    let key = "ANIMAL_STORE_HTTP__DEPRECATED_GET";
    assert!(served(&[]).unwrap() && served(&[(key, "serve")]).unwrap());
    assert!(!served(&[(key, "gone")]).unwrap());
    let error = "http.deprecated_get (ANIMAL_STORE_HTTP__DEPRECATED_GET) must be serve or gone, not \"off\"";
    assert_eq!(errors(&environment(&[(key, "off")])), [error]);
}
