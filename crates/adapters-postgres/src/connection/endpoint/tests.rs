use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::*;

fn endpoint(url: &str) -> Result<PgEndpoint, PgEndpointError> {
    PgEndpoint::parse(&url.into())
}

fn mode(url: &str) -> SslMode {
    endpoint(url).unwrap().configs[0].get_ssl_mode()
}

/// All texts that are shown of a URL.
fn shown(url: &str) -> String {
    match endpoint(url) {
        Ok(endpoint) => format!("{endpoint:?} {endpoint} {}", endpoint.login()),
        Err(error) => format!("{error:?} {error}"),
    }
}

#[test]
fn an_endpoint_is_shown_as_its_hosts_and_its_database() {
    for (url, expected) in [
        ("postgres://localhost/animals", "localhost:5432/animals"),
        (
            "postgresql://shop:secret@db.example:7/animals?connect_timeout=3",
            "db.example:7/animals",
        ),
        (
            "postgres://a:1,b:2/animals?target_session_attrs=read-write",
            "a:1,b:2/animals",
        ),
        ("postgres://[::1]:7/animals", "[::1]:7/animals"),
        (
            "postgres:///animals?host=/run/pg&port=7&user=shop",
            "/run/pg:7/animals",
        ),
        (
            "postgres:///animals?host=/run/a&host=/run/b&port=7",
            "/run/a:7,/run/b:7/animals",
        ),
        ("postgres://shop@%2Frun%2Fpg:7/animals", "/run/pg:7/animals"),
        ("postgres://localhost/%C3%A4", "localhost:5432/ä"),
    ] {
        assert_eq!(endpoint(url).unwrap().to_string(), expected);
    }
    let endpoint = endpoint("postgres://shop:secret@localhost/animals").unwrap();
    assert_eq!(endpoint.login(), "shop@localhost:5432/animals");
    assert_eq!(
        format!("{endpoint:?}"),
        "PgEndpoint(localhost:5432/animals)"
    );
}

#[test]
fn a_text_that_is_not_the_url_of_a_database_is_refused_by_its_wrong_part() {
    let [scheme, at_sign, form] = [
        "must begin with postgres://",
        "must have one @ at most",
        "must have the form",
    ];
    for (expected, urls) in [
        (
            scheme,
            &[
                "",
                "top-secret",
                "host=localhost dbname=top-secret",
                "mysql://top-secret@localhost/animals",
            ][..],
        ),
        (scheme, &["POSTGRES://localhost/animals"]),
        (
            at_sign,
            &[
                "postgres://shop:top@secret@localhost/animals",
                "postgres://shop:1/secret?user=@localhost/animals",
            ],
        ),
        (
            at_sign,
            &["postgres://shop:top@secret/animals@localhost/animals"],
        ),
        (form, &["postgres://%ff:secret@localhost/animals"]),
        (
            form,
            &[
                "postgres://",
                "postgres:///animals",
                "postgres://:5432/animals",
                "postgres://a,,b/animals",
            ],
        ),
        (
            form,
            &[
                "postgres://[::1/animals",
                "postgres://%ff:5432/animals",
                "postgres://shop:secret@/animals",
            ],
        ),
        (
            form,
            &[
                "postgres://localhost:x/animals",
                "postgres://localhost:99999/animals",
                "postgres://a:0/animals",
            ],
        ),
        (
            form,
            &[
                "postgres://[::1]5432/animals",
                "postgres://shop:secret",
                "postgres://localhost/animals?port=7",
            ],
        ),
        (
            form,
            &[
                "postgres://localhost",
                "postgres://localhost/",
                "postgres://localhost/%ff",
            ],
        ),
    ] {
        for url in urls {
            let error = endpoint(url).unwrap_err().to_string();
            assert!(
                error.starts_with(expected) && !error.contains("secret"),
                "{url}: {error}"
            );
        }
    }
}

#[test]
fn options_that_cannot_be_used_are_refused_by_their_name() {
    for (options, shown) in [
        ("x=top-secret", r#""x""#),
        ("port=7&sslkey=top-secret", r#""sslkey""#),
        ("=", r#""""#),
        ("connect_timeout=top-secret", r#""connect_timeout""#),
        (
            "target_session_attrs=top-secret",
            r#""target_session_attrs""#,
        ),
        ("application_name=%ff", r#""application_name""#),
        ("port=1&options", r#""options""#),
        // The name may be part of the password.
        ("password=top&secret=1", "number 2"),
        ("sslmode=disable&password=top&secret", "number 3"),
        ("p%61ssword=top&secret", "number 2"),
    ] {
        let error = endpoint(&format!("postgres://localhost/animals?{options}"))
            .unwrap_err()
            .to_string();
        let expected = format!(
            "has the option {shown}, which is unknown or has an invalid value; docs/operations/postgresql.md"
        );
        assert!(error.starts_with(&expected), "{options}: {error}");
    }
}

#[test]
fn options_are_used() {
    let config = |options: &str| {
        let endpoint = endpoint(&format!("postgres://localhost/animals{options}")).unwrap();
        endpoint.named(true).configs.remove(0)
    };
    let given = config("?application_name=a%20b&options=-c%20x%3Dy");
    assert_eq!(
        (given.get_application_name(), given.get_options()),
        (Some("a b"), Some("-c x=y"))
    );

    let plain = config("");
    assert_eq!(
        (plain.get_application_name(), plain.get_options()),
        (Some("animal-store"), None)
    );
}

#[test]
fn an_instance_has_the_name_of_its_host_and_process() {
    let pid = process::id().to_string();
    let name = application_name(false);
    assert!(
        name.split(' ').eq(["animal-store", &*this_host(), &*pid]),
        "{name}"
    );
    assert_eq!(application_name(true), "animal-store");
}

fn this_host() -> String {
    let output = process::Command::new("uname")
        .arg("-n")
        .output()
        .expect("uname runs");
    String::from_utf8(output.stdout)
        .expect("ASCII")
        .trim()
        .to_owned()
}

#[test]
fn a_dead_peer_is_noticed_within_half_a_minute_unless_the_url_sets_keepalives() {
    let keepalives = |options: &str| {
        let config = endpoint(&format!("postgres://localhost/animals{options}"))
            .unwrap()
            .configs
            .remove(0);
        (
            config.get_keepalives_idle().as_secs(),
            config.get_keepalives_interval(),
            config.get_keepalives_retries(),
        )
    };
    assert_eq!(keepalives(""), (15, Some(Duration::from_secs(5)), Some(3)));
    assert_eq!(keepalives("?keepalives_idle=7"), (7, None, None));
}

#[test]
fn each_host_has_all_parts_of_the_url() {
    let endpoint =
        endpoint("postgres://shop:secret@a:1,[::1]:2,c/animals?sslmode=require&user=other")
            .unwrap();
    let ports: Vec<_> = endpoint
        .configs
        .iter()
        .flat_map(|config| config.get_ports().to_vec())
        .collect();
    assert_eq!(ports, [1, 2, 5432]);
    for config in &endpoint.configs {
        assert_eq!(
            (config.get_user(), config.get_password()),
            (Some("other"), Some(b"secret".as_slice()))
        );
        assert_eq!(
            (config.get_dbname(), config.get_ssl_mode()),
            (Some("animals"), SslMode::Require)
        );
    }
}

/// The tests against servers have the meaning of each mode.
#[test]
fn encryption_has_the_modes_of_libpq() {
    for (option, expected) in [
        ("", SslMode::Prefer),
        ("sslmode=disable&sslmode=require", SslMode::Require),
        ("ssl%6Dode=requir%65", SslMode::Require),
    ] {
        assert_eq!(
            mode(&format!("postgres://localhost/animals?{option}")),
            expected,
            "{option}"
        );
    }
    for option in [
        "sslmode=",
        "sslmode=allow",
        "sslmode=Require",
        "sslmode=top-secret",
    ] {
        let error = endpoint(&format!("postgres://localhost/animals?{option}")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("must have an sslmode of disable, "),
            "{option}: {error}"
        );
    }
    for option in ["disable", "prefer", "require", "verify-ca"] {
        let error = endpoint(&format!(
            "postgres://localhost/animals?sslmode={option}&sslrootcert=system"
        ))
        .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("must have sslmode=verify-full"),
            "{option}: {error}"
        );
    }
}

/// A file that has no effect is not read.
#[test]
fn a_unix_socket_is_not_encrypted() {
    for option in [
        "sslmode=require",
        "sslmode=verify-full&sslrootcert=/nowhere",
    ] {
        assert_eq!(
            mode(&format!("postgres:///animals?host=/run/pg&{option}")),
            SslMode::Disable
        );
    }
}

#[test]
fn authorities_that_cannot_be_read_are_an_error() {
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), "top-secret").unwrap();
    for (file, reason) in [
        ("/nowhere", "No such file"),
        (other.path().to_str().unwrap(), "no certificate"),
    ] {
        let url = format!("postgres://localhost/animals?sslmode=verify-ca&sslrootcert={file}");
        let text = endpoint(&url).unwrap_err().to_string();
        let expected = format!("has an sslrootcert that cannot be used: {file}");
        assert!(
            text.starts_with(&expected) && text.contains(reason) && !text.contains("top-secret"),
            "{text}"
        );
    }
}

/// The fuzz target `postgres_url` tries other passwords.
#[test]
fn a_password_with_separators_of_urls_is_not_shown() {
    let passwords = "sec?ret|sec/ret|sec@ret|sec:ret|sec#ret|sec%ret|sec%zzret|sec@ret/x|sec@ret?x|sec@ret:1/x|\
        sec@ret,x|1/secret?user=|1/secret?application_name=x&user=y|1?secret|1,secret|[sec]ret|sec ret|sec&ret=1|\
        sec@/ret|@secret|/secret|?secret|1/secret";
    for password in passwords.split('|') {
        let encoded = utf8_percent_encode(password, NON_ALPHANUMERIC).to_string();
        for password in [password, &encoded] {
            for url in [
                format!("postgres://shop:{password}@localhost/animals"),
                format!(
                    "postgres://shop:{password}@localhost:7/animals?sslmode=require&application_name=x"
                ),
                format!("postgres://localhost/animals?user=shop&password={password}"),
            ] {
                let text = shown(&url);
                assert!(
                    !text.contains("sec") && !text.contains("ret"),
                    "{url}: {text}"
                );
            }
        }
        let url = format!("postgres://shop:{encoded}@localhost/animals");
        assert_eq!(
            endpoint(&url).unwrap().configs[0].get_password(),
            Some(password.as_bytes())
        );
    }
}

#[test]
fn a_connection_to_another_machine_without_a_checked_certificate_is_exposed() {
    let authority = tempfile::NamedTempFile::new().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["db".to_owned()]).unwrap();
    std::fs::write(authority.path(), certificate.cert.pem()).unwrap();
    let roots = authority.path().display();
    for (url, is_exposed) in [
        ("localhost/animals".to_owned(), false),
        ("127.0.0.1,[::1]/animals?sslmode=disable".to_owned(), false),
        ("/animals?host=/run/postgresql".to_owned(), false),
        ("localhost/animals?hostaddr=127.0.0.1".to_owned(), false),
        (
            format!("db/animals?sslmode=verify-full&sslrootcert={roots}"),
            false,
        ),
        (
            format!("db/animals?sslmode=verify-ca&sslrootcert={roots}"),
            false,
        ),
        (
            format!("db/animals?sslmode=require&sslrootcert={roots}"),
            false,
        ),
        ("db/animals".to_owned(), true),
        ("localhost,db/animals?sslmode=require".to_owned(), true),
        ("localhost/animals?hostaddr=192.0.2.1".to_owned(), true),
        ("db/animals?sslmode=disable".to_owned(), true),
        ("db/animals?sslmode=require".to_owned(), true),
        (
            format!("db/animals?sslmode=prefer&sslrootcert={roots}"),
            true,
        ),
    ] {
        let endpoint = endpoint(&format!("postgres://user:secret@{url}")).unwrap();
        assert_eq!(endpoint.is_exposed(), is_exposed, "{url}");
    }
}
