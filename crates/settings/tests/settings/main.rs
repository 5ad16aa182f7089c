//! The engine over a small schema: sources, errors, secrets and what it prints.

#![expect(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    reason = "what a test needs is there; Values::open takes functions that can fail"
)]

mod parsers;
mod printed;
mod secrets;
mod sources;

use std::{fs, path::Path};

use animal_store_settings::{
    Changes, Schema, Setting, SettingsError, Sources, Values,
    parsers::{number, one_of},
};
use secrecy::{ExposeSecret, SecretString};
use tempfile::NamedTempFile;

static SCHEMA: Schema = Schema {
    prefix: "SHOP",
    sections: &[
        &[
            Setting::new("http.workers", "2", "Number of worker threads."),
            Setting::new("http.origins", "", "Origins of web pages: a list."),
            Setting::new("http.cert_file", "", "File with the certificate."),
        ],
        &[
            Setting::secret("keys.tokens", "Tokens of the API keys: a list."),
            Setting::new("keys.backend", "", "Source of the API keys."),
        ],
        &[Setting::new("log.format", "text", "`text` or `json`.").reloaded()],
    ],
    judge: |path, has_secrets| vec![format!("{} {has_secrets}", path.display())],
};

#[derive(Debug, PartialEq)]
struct Http {
    workers: u8,
    origins: Vec<String>,
    certificate: Option<String>,
}

fn http(values: &mut Values) -> Option<Http> {
    Some(Http {
        workers: values.get("http.workers", number(1..=9)),
        origins: values.list("http.origins", |items| Ok::<_, String>(items.to_vec()))?,
        certificate: values.file("http.cert_file", false),
    })
}

fn tokens(values: &mut Values) -> Option<SecretString> {
    values.get("keys.backend", |_| Ok(()));
    values.secret("keys.tokens")
}

fn format(values: &mut Values) -> Option<&'static str> {
    Some(values.get("log.format", one_of(&[("text", "t"), ("json", "j")])))
}

/// Reads every section.
fn all(values: &mut Values) -> Option<()> {
    http(values);
    tokens(values);
    format(values);
    Some(())
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

fn in_file(path: &Path) -> Sources {
    Sources {
        file: Some(path.to_owned()),
        ..Sources::default()
    }
}

fn in_environment(variables: &[(&str, &str)]) -> Sources {
    let variable = |(name, value): &(&str, &str)| (name.into(), value.into());
    Sources {
        environment: variables.iter().map(variable).collect(),
        ..Sources::default()
    }
}

fn flag(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[track_caller]
fn errors(sources: &Sources) -> Vec<String> {
    let errors = SCHEMA.read(sources).open(all).unwrap_err();
    errors.lines().into_iter().map(str::to_owned).collect()
}

#[test]
fn a_process_that_runs_takes_over_only_the_settings_that_are_marked() {
    let mut values = SCHEMA.read(&Sources::default());
    let later = SCHEMA.read(&Sources {
        flags: vec![flag("http.workers", "3"), flag("log.format", "json")],
        ..Sources::default()
    });
    for reloaded in [vec!["log.format"], Vec::new()] {
        let others = vec!["http.workers"];
        let changes = Changes { reloaded, others };
        assert_eq!(values.reload(&later), changes);
    }
}

#[test]
fn a_warning_names_its_setting_and_the_source() {
    let mut values = SCHEMA.read(&Sources::default());
    values.warn("log.format", "is slow");
    assert_eq!(values.warnings(), ["log.format (default) is slow"]);
}

#[test]
fn every_error_is_listed_in_a_line_of_its_own() {
    let sources = in_environment(&[
        ("SHOP_HTTP__WORKERS", "0"),
        ("SHOP_HTTP__WORKER", ""),
        ("SHOP_LOG__FORMAT", "xml"),
    ]);
    let error: SettingsError = SCHEMA.read(&sources).open(all).unwrap_err();
    let expected = [
        "http.worker (SHOP_HTTP__WORKER) is unknown: did you mean SHOP_HTTP__WORKERS?",
        "http.workers (SHOP_HTTP__WORKERS) must be a whole number from 1 to 9, not \"0\"",
        "log.format (SHOP_LOG__FORMAT) must be text or json, not \"xml\"",
    ];
    assert_eq!(error.lines(), expected);
    assert_eq!(error.one_line(), expected.join("; "));
    let text = format!("the configuration is invalid:\n  {}", expected.join("\n  "));
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_read_fails_on_the_sections_that_it_uses_and_warns_of_the_others() {
    for (variable, fails, warnings) in [
        // A file that is not opened is not known to be broken.
        ("SHOP_HTTP__CERT_FILE", false, 0),
        ("SHOP_HTTP__WORKERS", false, 1),
        ("SHOP_HTTP__WORKER", false, 1),
        ("SHOP_LOG__FORMAT", true, 0),
        ("SHOP_LOG__FORMATS", true, 0),
        // It can be a misspelt section of any command.
        ("SHOP_LOGS__FORMAT", true, 0),
    ] {
        let mut values = SCHEMA.read(&in_environment(&[(variable, "/nowhere")]));
        all(&mut values);
        let opened = values.open(format);
        assert_eq!(opened.is_err(), fails, "{variable}");
        if fails {
            continue;
        }
        let found = values.warnings();
        assert_eq!(found.len(), warnings, "{variable}: {found:?}");
        let mut endings = found
            .iter()
            .map(|line| line.ends_with("; this command does not use it"));
        assert!(endings.all(|ends| ends), "{found:?}");
        assert!(values.open(all).is_err(), "{variable}");
    }
}

#[test]
fn a_rule_about_several_settings_is_judged_only_if_each_of_them_is_known() {
    let rule = |values: &mut Values| {
        values.require(
            false,
            &["log.format", "http.workers"],
            "requires http.workers",
        );
        Some(())
    };
    let judged = |sources: &Sources| {
        let mut values = SCHEMA.read(sources);
        all(&mut values);
        values.open(|values| {
            rule(values);
            all(values)
        })
    };
    let violated = "log.format (default) requires http.workers";
    let errors = judged(&Sources::default()).unwrap_err();
    assert_eq!(errors.lines(), [violated]);
    let errors = judged(&in_environment(&[("SHOP_HTTP__WORKERS", "0")])).unwrap_err();
    assert_eq!(errors.lines().len(), 1, "{errors}");
    let errors = judged(&in_file(Path::new("/nowhere"))).unwrap_err();
    assert_eq!(errors.lines().len(), 1, "{errors}");
}

#[test]
fn a_file_that_is_opened_is_judged() {
    let certificate = file("PEM");
    let path = certificate.path().display().to_string();
    let mut values = SCHEMA.read(&in_environment(&[("SHOP_HTTP__CERT_FILE", &path)]));
    http(&mut values);
    assert_eq!(values.warnings(), [""; 0]);
    let opened = values.open(http).unwrap();
    assert_eq!(opened.certificate.as_deref(), Some("PEM"));
    assert_eq!(values.warnings(), [format!("{path} false")]);

    let missing = errors(&in_environment(&[("SHOP_HTTP__CERT_FILE", "/nowhere")]));
    let expected =
        "http.cert_file (SHOP_HTTP__CERT_FILE) names /nowhere, which cannot be read: No such file";
    assert!(
        matches!(&missing[..], [error] if error.starts_with(expected)),
        "{missing:?}"
    );
}
