//! No text that is shown of a URL contains its password, of PostgreSQL or of Redis, even if its special characters are
//! not percent-encoded. The address that is shown of a PostgreSQL database leads to the same address.
#![no_main]

use animal_store_adapters_postgres::PgEndpoint;
use animal_store_adapters_redis::{RedisEndpoint, RedisTls};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "top-secret";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    // Nothing in it is percent-encoded.
    if !text.contains(['%', '?'])
        && let Ok([address, ..]) = PgEndpoint::shown(text)
    {
        let again = PgEndpoint::shown(&format!("postgres://{address}"));
        assert!(
            again.as_ref().is_ok_and(|[again, ..]| *again == address),
            "{text}: {address}: {again:?}"
        );
    }
    // The lines of the input: a user, the text of the password before and after the secret, the rest of the URL.
    let [user, before, after, rest] = text.split('\n').collect::<Vec<_>>()[..] else {
        return;
    };
    if [user, rest].iter().any(|part| part.contains(SECRET)) {
        return;
    }
    let login = format!("{user}:{before}{SECRET}{after}@{rest}");
    check_secret(&format!("postgres://{login}"));
    // Otherwise a part of the password may be another option.
    if !before.contains('&') || !before.contains('=') {
        check_secret(&format!(
            "postgres://{rest}?{user}&password={before}{SECRET}{after}"
        ));
    }
    let shown = match RedisEndpoint::parse(&format!("redis://{login}").into(), RedisTls::default())
    {
        Ok(endpoint) => format!("{endpoint} {endpoint:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(SECRET), "redis://{login}: {shown}");
});

fn check_secret(url: &str) {
    let shown = PgEndpoint::shown(url).map_err(|error| format!("{error} {error:?}"));
    assert!(!format!("{shown:?}").contains(SECRET), "{url}: {shown:?}");
}
