use super::*;

fn endpoint(url: &str) -> RedisEndpoint {
    RedisEndpoint::parse(&url.into(), RedisTls::default()).expect(url)
}

#[test]
fn an_invalid_url_is_refused_with_its_wrong_part_and_without_its_password() {
    for (problem, urls) in [
        (
            "is not a URL",
            &[
                "app:hunter2@localhost",
                "redis//app:hunter2@localhost",
                "redis://app:hunter2@",
                "redis://app:hunter2@[localhost",
                "redis://app:hunter2@localhost:99999",
                "redis://app:hun/ter2@localhost",
                "redis+sentinel://app:hunter2@a,/shop",
                "redis+sentinel://app:hunter2@a:one,b/shop",
                "redis+sentinel://app:hun/ter2@a,b/shop",
                "unix+sentinel://a/shop?pass=hunter2",
            ][..],
        ),
        (
            "has an invalid",
            &[
                "redis:hunter2@localhost",
                "redis://app:hunter2@0.0.0.0",
                "redis://app:hunter2%FF@localhost",
                "unix://?pass=hunter2",
                "unix://host/path?pass=hunter2",
                "unix:///path?pass=hunter2&db=one",
                "redis+sentinel://app:hunter2@a,b/shop/one",
                "redis+sentinel://app:hunter2@a,b/shop/0/1",
            ],
        ),
        (
            "has a negative database",
            &["redis://app:hunter2@localhost/-1"],
        ),
        (
            "has an unknown or repeated option",
            &[
                "redis://app:hunter2@localhost/0?foo=1",
                "rediss://app:hunter2@localhost?protocol=2",
                "unix:///path?pass=a&hunter2",
                "unix:///path?pass=hunter2&protocol=2",
                "unix:///path?pass=hunter2&pass=hunter2",
                "redis+sentinel://a/shop?password=hunter2",
                "redis+sentinel://a/shop?sentinel_password=hunter2&sentinel_password=a",
                "redis+sentinel://a/shop?sentinel_user=a&sentinel_user=b&sentinel_password=hunter2",
            ],
        ),
        ("has a part after #", &["redis://app:hunter2@localhost/0#1"]),
        (
            "ends in #insecure",
            &[
                "rediss://app:hunter2@localhost/#insecure",
                "redis+sentinel://app:hunter2@a,b/shop#insecure",
            ],
        ),
        (
            "has a user without a password",
            &[
                "redis://hunter2@localhost",
                "unix:///path?user=hunter2",
                "redis+sentinel://a/shop?sentinel_user=hunter2",
            ],
        ),
        (
            "has a user or a password that is not an option",
            &[
                "unix://app:hunter2@localhost/path",
                "unix://hunter2@localhost/path",
            ],
        ),
        (
            "has no valid name of a service",
            &[
                "redis+sentinel://app:hunter2@a,b",
                "redis+sentinel://app:hunter2@a,b/two%20words",
            ],
        ),
    ] {
        for &url in urls {
            let error = RedisEndpoint::parse(&url.into(), RedisTls::default()).expect_err(url);
            assert!(
                matches!(error, RedisEndpointError::Url(_)),
                "{url}: {error:?}"
            );
            assert!(error.to_string().starts_with(problem), "{url}: {error}");
            assert!(
                !format!("{error} {error:?}").contains("hunter2"),
                "{error:?}"
            );
        }
    }
}

#[test]
fn the_option_for_the_protocol_of_every_connection_is_accepted() {
    for url in [
        "redis://localhost/0?protocol=3",
        "unix:///path?protocol=resp3&db=1",
    ] {
        endpoint(url);
    }
}

#[test]
fn an_endpoint_prints_its_address_and_no_password() {
    let shown = |url: &str| {
        let endpoint = endpoint(url);
        format!("{endpoint} {endpoint:?}")
    };
    assert_eq!(
        shown("redis://app:hunter2@localhost:1234/3"),
        "localhost:1234 RedisEndpoint(localhost:1234)"
    );
    let socket = shown("unix:///run/redis.sock?user=app&pass=hunter2");
    assert_eq!(socket, "/run/redis.sock RedisEndpoint(/run/redis.sock)");
    let sentinels =
        shown("rediss+sentinel://app:hunter2@a,[::1]:7,[::2]/shop/3?sentinel_password=hunter2");
    let addresses = "shop of a:26379,::1:7,::2:26379";
    assert_eq!(sentinels, format!("{addresses} RedisEndpoint({addresses})"));
}

#[test]
fn a_connection_to_another_machine_without_tls_is_exposed() {
    for url in [
        "redis://localhost",
        "redis://app:secret@127.0.0.1:6380/1",
        "redis://[::1]",
        "unix:///run/redis.sock",
        "rediss://redis.example",
        "rediss+sentinel://192.0.2.1/shop",
    ] {
        assert!(!endpoint(url).is_exposed(), "{url}");
    }
    for url in [
        "redis://redis.example",
        "redis://app:secret@192.0.2.1:6380/1",
        "redis+sentinel://localhost/shop",
        "redis+sentinel://192.0.2.1,192.0.2.2/shop",
    ] {
        assert!(endpoint(url).is_exposed(), "{url}");
    }
}
