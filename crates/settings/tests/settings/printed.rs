//! The configuration as TOML, for operators.

use super::*;

#[test]
fn what_is_printed_is_the_same_configuration_and_names_each_source() {
    let secret = file("a\n");
    let path = secret.path().to_str().unwrap();
    let toml = file("[http]\norigins = ['a', 'b']\nworkers = 3\n");
    let mut sources = in_environment(&[
        ("SHOP_KEYS__TOKENS_FILE", path),
        ("SHOP_HTTP__CERT_FILE", "a\"\\b\u{7f}"),
    ]);
    sources.file = Some(toml.path().to_owned());
    sources.flags = vec![flag("log.format", "json")];
    let mut values = SCHEMA.read(&sources);
    values.set("keys.backend", "memory", "keys.tokens");
    let lines = values.lines();
    let name = toml.path().display();
    let expected = [
        format!("http.workers = 3 # {name}, line 3"),
        format!("http.origins = \"a,b\" # {name}, line 2"),
        "http.cert_file = \"a\\\"\\\\b\\u007f\" # SHOP_HTTP__CERT_FILE".to_owned(),
        format!("keys.tokens_file = {path:?} # SHOP_KEYS__TOKENS_FILE"),
        "keys.backend = \"memory\" # keys.tokens".to_owned(),
        "log.format = \"json\" # --set".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!(values.text("http.origins"), "a,b");
    let printed = file(&lines.join("\n"));
    let printed = SCHEMA.read(&in_file(printed.path()));
    for setting in SCHEMA.settings().filter(|setting| !setting.is_secret) {
        assert_eq!(printed.text(setting.name), values.text(setting.name));
    }
}

#[test]
fn a_template_has_every_setting_and_its_default_and_what_is_set() {
    let set = [flag("http.cert_file", "/data/a.pem")];
    let text = SCHEMA.template("# head\n", &set).unwrap();
    assert!(text.starts_with("# head\n"), "{text}");
    assert!(
        text.contains("\n# Number of worker threads.\n#http.workers = 2\n"),
        "{text}"
    );
    assert!(
        text.contains("\nhttp.cert_file = \"/data/a.pem\"\n"),
        "{text}"
    );
    for name in ["http.worker", "keys.tokens"] {
        let refused = SCHEMA
            .template("", &[flag(name, "top-secret")])
            .unwrap_err();
        let is_refused = refused.starts_with(name) && !refused.contains("top-secret");
        assert!(is_refused, "{refused}");
    }
}
