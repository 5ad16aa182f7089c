//! A configuration file is read without a panic. Each error names a key or the file, and neither an error nor the
//! configuration that is shown contains a secret.
#![no_main]

use std::{cell::RefCell, fs};

use animal_store_server::{
    Config,
    config::{SCHEMA, Sources},
};
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;
use toml::de::{DeTable, DeValue};

const SECRET: &str = "top-secret";

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a file"));
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let path = FILE.with_borrow(|file| {
        fs::write(file.path(), data).expect("the file is ours");
        file.path().to_owned()
    });
    let name = path.display().to_string();
    let loaded = Config::load(&Sources {
        file: Some(path),
        ..Sources::default()
    });
    let shown = match &loaded {
        Ok(config) => format!("{config:?}"),
        Err(error) => {
            let error = error.to_string();
            // Otherwise the name of an unknown key may have a line end.
            if !["\\", "\"\"\"", "'''"]
                .iter()
                .any(|quote| text.contains(quote))
            {
                for line in error.lines().skip(1) {
                    let has_key = SCHEMA
                        .settings()
                        .any(|setting| line.trim_start().starts_with(setting.name));
                    assert!(has_key || line.contains(&name), "{line}");
                }
            }
            error
        }
    };
    if is_secret(text) {
        assert!(!shown.contains(SECRET), "{shown}");
    }
});

/// Whether the secret of the file occurs only where a secret is expected: as the value of a secret key, or as the
/// password of a URL. In a file that is not TOML, no text is expected.
fn is_secret(text: &str) -> bool {
    let Ok(table) = DeTable::parse(text) else {
        return true;
    };
    let secrets = SCHEMA.settings().filter(|setting| setting.is_secret);
    let in_secrets = secrets.map(|setting| {
        let mut names = setting.name.split('.');
        let first = names.next().and_then(|name| table.get_ref().get(name));
        let value = names.try_fold(first?.get_ref(), |value, name| match value {
            DeValue::Table(table) => table.get(name).map(|value| value.get_ref()),
            _ => None,
        });
        Some(count(value?, setting.name.ends_with("url")))
    });
    in_secrets.flatten().sum::<usize>() == text.matches(SECRET).count()
}

fn count(value: &DeValue<'_>, is_url: bool) -> usize {
    match value {
        DeValue::Array(values) => values
            .iter()
            .map(|value| count(value.get_ref(), is_url))
            .sum(),
        DeValue::String(text) => {
            let password = if is_url {
                password(text).unwrap_or_default()
            } else {
                text
            };
            password.matches(SECRET).count()
        }
        _ => 0,
    }
}

/// The text between the first `:` of a login and its last `@`.
fn password(url: &str) -> Option<&str> {
    url.split_once("://")?
        .1
        .rsplit_once('@')?
        .0
        .split_once(':')
        .map(|(_, password)| password)
}
