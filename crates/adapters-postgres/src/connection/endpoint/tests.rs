use animal_store_adapter_kit::this_user;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::*;

fn endpoint(url: &str) -> Result<PgEndpoint, PgEndpointError> {
    PgEndpoint::parse(&url.into())
}

fn error(url: &str) -> String {
    endpoint(url).unwrap_err().to_string()
}

/// The configuration of a URL with these options.
fn config(options: &str, transaction_pooling: bool) -> Config {
    let endpoint = endpoint(&format!("postgres://localhost/animals{options}")).unwrap();
    endpoint.named(transaction_pooling).configs.remove(0)
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
    for (login, user) in [("shop:secret@", "shop"), ("", &this_user())] {
        let endpoint = endpoint(&format!("postgres://{login}localhost/animals")).unwrap();
        assert_eq!(endpoint.login(), format!("{user}@localhost:5432/animals"));
    }
    let endpoint = endpoint("postgres://shop:secret@localhost/animals").unwrap();
    assert_eq!(
        format!("{endpoint:?}"),
        "PgEndpoint(localhost:5432/animals)"
    );
}

#[test]
fn a_text_that_is_not_the_url_of_a_database_is_refused_by_its_wrong_part() {
    let not_urls = [
        "",
        "top-secret",
        "host=localhost dbname=top-secret",
        "mysql://top-secret@localhost/animals",
        "POSTGRES://localhost/animals",
    ];
    let with_several_at_signs = [
        "postgres://shop:top@secret@localhost/animals",
        "postgres://shop:1/secret?user=@localhost/animals",
        "postgres://shop:top@secret/animals@localhost/animals",
    ];
    let of_another_form = [
        "postgres://",
        "postgres:///animals",
        "postgres://:5432/animals",
        "postgres://a,,b/animals",
        "postgres://%ff:secret@localhost/animals",
        "postgres://[::1/animals",
        "postgres://%ff:5432/animals",
        "postgres://shop:secret@/animals",
        "postgres://localhost:x/animals",
        "postgres://localhost:99999/animals",
        "postgres://a:0/animals",
        "postgres://[::1]5432/animals",
        "postgres://shop:secret",
        "postgres://localhost/animals?port=7",
        "postgres://localhost",
        "postgres://localhost/",
        "postgres://localhost/%ff",
    ];
    for (expected, urls) in [
        ("must begin with postgres://", &not_urls[..]),
        ("must have one @ at most", &with_several_at_signs),
        ("must have the form", &of_another_form),
    ] {
        for url in urls {
            let error = error(url);
            assert!(error.starts_with(expected), "{url}: {error}");
            assert!(!error.contains("secret"), "{url}: {error}");
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
        let error = error(&format!("postgres://localhost/animals?{options}"));
        let expected = format!("has the option {shown}, which is unknown or has an invalid value;");
        assert!(error.starts_with(&expected), "{options}: {error}");
    }
}

#[test]
fn options_are_used() {
    let config = |options: &str| config(options, true);
    let given = config("?application_name=a%20b&options=-c%20x%3Dy");
    assert_eq!(given.get_application_name(), Some("a b"));
    assert_eq!(given.get_options(), Some("-c x=y"));
    let plain = config("");
    assert_eq!(plain.get_application_name(), Some("animal-store"));
    assert_eq!(plain.get_options(), None);
}

#[test]
fn an_instance_has_the_name_of_its_host_and_process() {
    let config = config("", false);
    let name = config.get_application_name().unwrap();
    let uname = process::Command::new("uname").arg("-n").output().unwrap();
    let host = String::from_utf8(uname.stdout).unwrap();
    let pid = process::id();
    assert_eq!(name, format!("animal-store {} {pid}", host.trim()));
}

#[test]
fn a_dead_peer_is_noticed_within_half_a_minute_unless_the_url_sets_keepalives() {
    for (options, idle, interval, retries) in [
        ("", 15, Some(Duration::from_secs(5)), Some(3)),
        ("?keepalives_idle=7", 7, None, None),
    ] {
        let config = config(options, true);
        assert_eq!(config.get_keepalives_idle().as_secs(), idle);
        assert_eq!(config.get_keepalives_interval(), interval);
        assert_eq!(config.get_keepalives_retries(), retries);
    }
}

#[test]
fn each_host_has_all_parts_of_the_url() {
    let url = "postgres://shop:secret@a:1,[::1]:2,c/animals?sslmode=require&user=other";
    let configs = endpoint(url).unwrap().configs;
    let ports: Vec<_> = configs.iter().flat_map(Config::get_ports).collect();
    assert_eq!(ports, [&1, &2, &5432]);
    for config in configs {
        assert_eq!(config.get_user(), Some("other"));
        assert_eq!(config.get_password(), Some(b"secret".as_slice()));
        assert_eq!(config.get_dbname(), Some("animals"));
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
    }
}

/// The tests against servers have the meaning of each mode, and the combinations with authorities.
#[test]
fn encryption_has_the_modes_of_libpq() {
    for (url, expected) in [
        ("localhost/animals", SslMode::Prefer),
        (
            "localhost/animals?sslmode=disable&sslmode=require",
            SslMode::Require,
        ),
        ("localhost/animals?ssl%6Dode=requir%65", SslMode::Require),
        // A Unix socket is not encrypted, and a file that has no effect is not read.
        ("/animals?host=/run/pg&sslmode=require", SslMode::Disable),
        (
            "/animals?host=/run/pg&sslmode=verify-full&sslrootcert=/nowhere",
            SslMode::Disable,
        ),
    ] {
        let endpoint = endpoint(&format!("postgres://{url}")).unwrap();
        assert_eq!(endpoint.configs[0].get_ssl_mode(), expected, "{url}");
    }
    for (options, expected) in [
        ("sslmode=", "must have an sslmode of disable, "),
        ("sslmode=allow", "must have an sslmode of disable, "),
        ("sslmode=Require", "must have an sslmode of disable, "),
        ("sslmode=top-secret", "must have an sslmode of disable, "),
        (
            "sslmode=require&sslrootcert=system",
            "must have sslmode=verify-full",
        ),
    ] {
        let error = error(&format!("postgres://localhost/animals?{options}"));
        assert!(error.starts_with(expected), "{options}: {error}");
    }
}

#[test]
fn authorities_that_cannot_be_read_are_an_error() {
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), "top-secret").unwrap();
    for (file, reason) in [
        ("/nowhere", "No such file"),
        ("/dev/zero", "it is larger than 1 MiB"),
        (other.path().to_str().unwrap(), "no certificate"),
    ] {
        let url = format!("postgres://localhost/animals?sslmode=verify-ca&sslrootcert={file}");
        let text = error(&url);
        let expected = format!("has an sslrootcert that cannot be used: {file}");
        assert!(text.starts_with(&expected), "{text}");
        assert!(
            text.contains(reason) && !text.contains("top-secret"),
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
    let checked = [
        "localhost/animals".to_owned(),
        "127.0.0.1,[::1]/animals?sslmode=disable".to_owned(),
        "/animals?host=/run/postgresql".to_owned(),
        "localhost/animals?hostaddr=127.0.0.1".to_owned(),
        format!("db/animals?sslmode=verify-full&sslrootcert={roots}"),
        format!("db/animals?sslmode=verify-ca&sslrootcert={roots}"),
        format!("db/animals?sslmode=require&sslrootcert={roots}"),
    ];
    let exposed = [
        "db/animals".to_owned(),
        "localhost,db/animals?sslmode=require".to_owned(),
        "localhost/animals?hostaddr=192.0.2.1".to_owned(),
        "db/animals?sslmode=disable".to_owned(),
        "db/animals?sslmode=require".to_owned(),
        format!("db/animals?sslmode=prefer&sslrootcert={roots}"),
    ];
    for (urls, is_exposed) in [(&checked[..], false), (&exposed, true)] {
        for url in urls {
            let endpoint = endpoint(&format!("postgres://user:secret@{url}")).unwrap();
            assert_eq!(endpoint.is_exposed(), is_exposed, "{url}");
        }
    }
}
