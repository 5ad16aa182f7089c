//! How sources are merged, and the source that an error names.

use std::path::Path;

use super::*;

const RULE: &str = "must be a whole number from 1 to 9, not \"0\"";

#[test]
fn values_are_texts_numbers_or_lists() {
    for value in ["3", "'3'", "0x3", " ' 3 ' "] {
        let file = file(&format!("http = {{ workers = {value} }}\n"));
        let opened = SCHEMA.read(&in_file(file.path())).open(http).unwrap();
        assert_eq!(opened.workers, 3, "{value}");
    }
    let list = file("http.origins = [2026-01-01, 7, 2.5, true, '', 'a']\n");
    let opened = SCHEMA.read(&in_file(list.path())).open(http).unwrap();
    assert_eq!(opened.origins, ["2026-01-01", "7", "2.5", "true", "a"]);
    let text = in_environment(&[("SHOP_HTTP__ORIGINS", "a, b ,,")]);
    let opened = SCHEMA.read(&text).open(http).unwrap();
    assert_eq!(opened.origins, ["a", "b"]);
}

#[test]
fn a_number_of_any_size_is_refused_by_the_rule_of_its_setting() {
    for number in ["10", "99999999999999999999", "0xfffffffffffffffff"] {
        let file = file(&format!("http.workers = {number}\n"));
        let source = format!("{}, line 1", file.path().display());
        let rule = "must be a whole number from 1 to 9";
        let expected = format!("http.workers ({source}) {rule}, not \"{number}\"");
        assert_eq!(errors(&in_file(file.path())), [expected]);
    }
}

#[test]
fn an_error_names_the_source_that_wins_and_the_line_of_a_file() {
    let toml = file(
        "# comment\n[http]\n\nworkers = 0\norigins = [['a']]\n[log]\nformat = [\n  'text',\n  'x',\n]\n",
    );
    let mut sources = in_file(toml.path());
    let name = toml.path().display();
    let origins = format!("http.origins ({name}, line 5) must be a list of texts");
    let format = format!("log.format ({name}, line 7) must be text or json, not \"text,x\"");
    let expected = |source: &str| {
        let workers = format!("http.workers ({source}) {RULE}");
        [origins.clone(), workers, format.clone()]
    };
    assert_eq!(errors(&sources), expected(&format!("{name}, line 4")));
    let variable = ("SHOP_HTTP__WORKERS".into(), "0".into());
    sources.environment.push(variable);
    assert_eq!(errors(&sources), expected("SHOP_HTTP__WORKERS"));
    sources.flags.push(flag("http.workers", "0"));
    assert_eq!(errors(&sources), expected("--set"));
}

#[test]
fn a_list_of_lists_in_an_unknown_section_is_an_error_of_every_command() {
    let toml = file("[htp]\norigins = [['a']]\n");
    let opened = SCHEMA.read(&in_file(toml.path())).open(format);
    let name = toml.path().display();
    let expected = format!("htp.origins ({name}, line 2) must be a list of texts");
    assert_eq!(opened.unwrap_err().lines(), [expected]);
}

#[test]
fn a_file_that_cannot_be_read_is_reported_without_its_text() {
    let open = file("[keys]\n\ntokens = ['top-secret\n");
    let double = file("[keys]\nx = {\"é\" = 'top-secret', \"é\" = 1}\n");
    for (path, error) in [
        (
            Path::new("/nowhere"),
            ": cannot be read: No such file or directory (os error 2)",
        ),
        (
            Path::new("/dev/zero"),
            ": cannot be read: it is larger than 1 MiB",
        ),
        (
            open.path(),
            ": TOML parse error at line 3, column 22: unclosed array, expected `]`",
        ),
        (
            double.path(),
            ": TOML parse error at line 2, column 26: duplicate key",
        ),
    ] {
        let mut sources = in_file(path);
        sources.flags.push(flag("http.workers", "0"));
        let error = format!("{}{error}", path.display());
        let workers = format!("http.workers (--set) {RULE}");
        assert_eq!(errors(&sources), [error, workers]);
    }
}

#[test]
fn an_unknown_setting_is_reported_with_the_nearest_one() {
    let toml = file("colour = 'red'\n[http]\nworker = ''\n[keys]\ntoken_file = ''\n");
    let mut sources = in_file(toml.path());
    sources.environment = in_environment(&[
        ("SHOP_HTTP_WORKERS", ""),
        ("SHOP_HTTP__origins", ""),
        ("SHOP_PORT", ""),
        ("SHOP_HTTP__POOL_SIZE", ""),
        ("SHOP_keys.backend", ""),
        ("OTHER_HTTP__WORKER", "not ours"),
    ])
    .environment;
    for name in ["HTTP.Workers", "log.level", "log.fomat", "x.format"] {
        sources.flags.push(flag(name, "1"));
    }
    let name = toml.path().display();
    let in_file = [
        format!("colour ({name}, line 1) is unknown"),
        format!("http.worker ({name}, line 3) is unknown: did you mean http.workers?"),
        format!("keys.token_file ({name}, line 5) is unknown: did you mean keys.tokens_file?"),
    ];
    let others = [
        "HTTP.Workers (--set) is unknown: did you mean http.workers?",
        "HTTP__origins (SHOP_HTTP__origins) is unknown: did you mean SHOP_HTTP__ORIGINS?",
        "http.pool_size (SHOP_HTTP__POOL_SIZE) is unknown",
        "http_workers (SHOP_HTTP_WORKERS) is unknown: did you mean SHOP_HTTP__WORKERS?",
        "keys__backend (SHOP_keys.backend) is unknown: did you mean SHOP_KEYS__BACKEND?",
        "log.fomat (--set) is unknown: did you mean log.format?",
        "log.level (--set) is unknown",
        "port (SHOP_PORT) is unknown",
        "x.format (--set) is unknown",
    ];
    let mut expected: Vec<_> = others
        .map(str::to_owned)
        .into_iter()
        .chain(in_file)
        .collect();
    expected.sort();
    assert_eq!(errors(&sources), expected);
}
