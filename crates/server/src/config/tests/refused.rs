//! Values and rules that are violated: one mistake is one error. `settings` owns what a number and a duration are.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table with one value on a line")]
fn an_invalid_value_is_one_error_whatever_the_backend_is() {
    let limits = &["0", "1000001"][..];
    for (key, invalid, rule) in [
        (
            "http.listen",
            &["here"][..],
            "must be an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, not \"here\"",
        ),
        (
            "management.listen",
            &["user:secret@host:80"],
            "must be an IP address and a port, such as 127.0.0.1:8080 or [::]:8080",
        ),
        (
            "http.keep_alive",
            &["0s", "61m"],
            "must be a duration from 1ms to 1h, such as 5s, not",
        ),
        (
            "http.max_body_bytes",
            &["63", "1048577"],
            "must be a whole number from 64 to 1048576, not",
        ),
        (
            "http.rate_limit.per_second",
            limits,
            "must be a whole number from 1 to 1000000, not",
        ),
        (
            "http.auth_failures.per_minute",
            limits,
            "must be a whole number from 1 to 1000000, not",
        ),
        (
            "http.deprecated_get",
            &["off"],
            "must be serve or gone, not \"off\"",
        ),
        (
            "http.cors_origins",
            &["a,user:secret@b"],
            "number 1 must be an origin such as https://shop.example; number 2 must be an origin such as \
             https://shop.example",
        ),
        (
            "http.cors_origins",
            &["https://user:secret@b.example"],
            "number 1 must be \"https://b.example\", as browsers send it",
        ),
        (
            "http.public_url",
            &[
                "https://shop.example",
                "https://:secret@shop.example/v1",
                "/v1",
            ],
            "must be the URL of the API, such as https://shop.example/v1: http or https, without a user, a query or \
             a fragment, and with /v1 at its end",
        ),
        (
            "http.trusted_proxies",
            &["::1,http://user:secret@proxy"],
            "must contain IP addresses or networks such as 10.0.0.0/8, which number 2 is not",
        ),
        (
            "log.filter",
            &[
                "inf",
                "",
                " ",
                "info,",
                ",info",
                "info,,actix_http=off",
                "info,actix_http=",
                "info,=off",
            ],
            "must be a level, and after commas levels of modules, such as info or info,actix_http=error, not",
        ),
        (
            "storage.backend",
            &["disk", ""],
            "must be sqlite or memory or postgres, not",
        ),
        (
            "storage.idempotency_retention",
            &["999ms", "30d 1ms"],
            "must be a duration from 1s to 30days, such as 5s, not",
        ),
        (
            "storage.sqlite.path",
            &[
                "",
                "postgres://shop:top-secret@db",
                "-----BEGIN\ntop-secret",
            ],
            "must be the path of a file",
        ),
        (
            "storage.postgres.migrate",
            &["on_start"],
            "must be on-start or check",
        ),
        (
            "storage.postgres.transaction_pooling",
            &["True"],
            "must be true or false",
        ),
        (
            "storage.postgres.connections_per_worker",
            &["0", "65"],
            "must be a whole number from 1 to 64",
        ),
        (
            "storage.postgres.timeout",
            &["9ms", "61s"],
            "must be a duration from 10ms to 1m",
        ),
        ("storage.postgres.url", &["mysql://shop:top-secret@db"], ""),
        (
            "storage.postgres.migrate_url",
            &["mysql://shop:top-secret@db", "top-secret"],
            "",
        ),
        (
            "keys.backend",
            &["file"],
            "must be sqlite or memory or postgres or redis, not \"file\"",
        ),
        (
            "keys.memory.tokens",
            &["good,top secret"],
            "contains an invalid token, number 2",
        ),
        ("keys.redis.url", &["https://:top-secret@localhost"], ""),
        (
            "keys.redis.admin_url",
            &["https://:top-secret@localhost"],
            "",
        ),
        (
            "keys.redis.wait_replicas",
            &["17", "-1"],
            "must be a whole number from 0 to 16",
        ),
        (
            "keys.redis.prefix",
            &["", "two words", "é"],
            "must be 1 to 100 visible ASCII",
        ),
        (
            "keys.redis.lease",
            &["49ms", "61s"],
            "must be a duration from 50ms to 1m",
        ),
        (
            "keys.redis.tls_ca_file",
            &["/nowhere"],
            "names /nowhere, which cannot be read: No such file",
        ),
        (
            "traces.endpoint",
            &[
                "localhost:4318",
                "a/v1/traces?key=secret",
                "user:secret@a:4318",
                "ftp://a/",
                "http://user@a/",
                "http://:top-secret@a/",
                "http://a/?key=top-secret",
                "http://a/#b",
            ],
            "must be a URL such as http://127.0.0.1:4318/v1/traces, without user, password, query and fragment",
        ),
        (
            "traces.sample_ratio",
            &["-0.1", "1.1", "NaN", "half", ""],
            "must be a number from 0 to 1, such as 0.01, not",
        ),
    ] {
        for value in invalid {
            let servers = [POSTGRES, REDIS].concat();
            for backends in [&[][..], &[("storage.backend", "memory")], &servers] {
                // The later value of a key counts.
                assert_refused(&[backends, &[(key, value)]].concat(), key, rule);
            }
        }
    }
}

#[test]
fn a_rule_about_several_keys_is_one_error_about_the_first_of_them() {
    let everywhere = ("http.listen", "0.0.0.0:0");
    let memory = ("storage.backend", "memory");
    let pooling = ("storage.postgres.transaction_pooling", "true");
    let half = [
        ("shutdown.timeout", "1s"),
        ("shutdown.drain_delay", "501ms"),
    ];
    let own_file = "cannot be sqlite if storage.backend is postgres: each instance would have a file of its own";
    let one_database = "cannot be postgres unless storage.backend is postgres: API keys are in the database of the pets";
    for (settings, key, rule) in [
        (
            &[("http.rate_limit.burst", "10")][..],
            "http.rate_limit.burst",
            "requires http.rate_limit.per_second",
        ),
        (
            &half,
            "shutdown.drain_delay",
            "must be at most half of shutdown.timeout",
        ),
        (
            &[("http.listen", "[::1]:1"), ("management.listen", "[::1]:1")],
            "management.listen",
            "must be another address than http.listen",
        ),
        (
            &[memory, everywhere],
            TOKENS.0,
            "is required unless http.listen is a loopback address",
        ),
        (
            &[memory, ("http.listen", "[::]:0")],
            TOKENS.0,
            "is required unless http.listen is a loopback address",
        ),
        (
            &[POSTGRES[0], TOKENS],
            POSTGRES[1].0,
            "is required if storage.backend is postgres",
        ),
        (
            &[POSTGRES[0], POSTGRES[1], TOKENS, pooling],
            "storage.postgres.migrate_url",
            "is required if storage.postgres.transaction_pooling is true",
        ),
        (
            &[REDIS[0]],
            REDIS[1].0,
            "is required if keys.backend is redis",
        ),
        (
            &[("keys.backend", "postgres")],
            "keys.backend",
            one_database,
        ),
        (
            &[POSTGRES[0], POSTGRES[1], ("keys.backend", "sqlite")],
            "keys.backend",
            own_file,
        ),
        // Another error is the reason for these violations.
        (
            &[memory, everywhere, ("keys.backend", "rediss")],
            "keys.backend",
            "must be sqlite or memory or postgres or redis,",
        ),
    ] {
        assert_refused(settings, key, rule);
    }
    let management = ("management.listen", "127.0.0.1:8081");
    for listen in ["0.0.0.0:8081", "[::ffff:127.0.0.1]:8081"] {
        let settings = [TOKENS, management, ("http.listen", listen)];
        assert_refused(&settings, "management.listen", "must be another address");
    }
    for listen in ["127.0.0.2:8081", "[::1]:8081"] {
        config(&[("http.listen", listen)]);
    }
    config(&[("http.listen", "[::1]:0"), ("management.listen", "[::1]:0")]);
    for listen in ["127.8.8.8:0", "[::1]:0"] {
        config(&[memory, ("http.listen", listen)]);
    }
    for keys in [[TOKENS, memory], REDIS] {
        config(&[&keys[..], &[("http.listen", "[::]:0")]].concat());
    }
}
