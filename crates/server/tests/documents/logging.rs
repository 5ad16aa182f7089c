//! `docs/logging.md` lists exactly the fields that the code logs.

use std::{collections::BTreeSet, path::Path};

use crate::texts::texts;

const DOCUMENTATION: &str = include_str!("../../../../docs/logging.md");

/// Fields that the JSON format adds to every event.
const COMMON: [&str; 4] = ["timestamp", "level", "message", "target"];

const MACROS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "event"];

/// Splits the arguments of a macro, which the text starts with, at commas outside of strings and brackets.
fn arguments(text: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let mut start = 0;
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                arguments.push(text[start..index].trim());
                start = index + 1;
                if character == ')' {
                    return arguments;
                }
            }
            _ => {}
        }
    }
    panic!("a macro without an end: {text:.200}");
}

/// Returns the field of an argument such as `%address`, `status = 500` or `reason`. Other arguments have none.
fn field(argument: &str) -> Option<&str> {
    let name = argument.split('=').next()?.trim();
    let name = name.trim_start_matches(['%', '?']);
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_part)).then_some(name)
}

fn logged_fields(source: &str) -> BTreeSet<&str> {
    let production = source.split("#[cfg(test)]\nmod tests {").next();
    let production = production.unwrap_or_default();
    let macros = MACROS.map(|name| format!("tracing::{name}!("));
    let calls = macros
        .iter()
        .flat_map(|start| production.split(start.as_str()).skip(1));
    calls.flat_map(arguments).filter_map(field).collect()
}

#[test]
fn the_documentation_lists_exactly_the_fields_that_are_logged() {
    let (_, fields) = DOCUMENTATION.split_once("## Fields").expect("the fields");
    let table = fields.split("\n## ").next().unwrap_or_default();
    // The first cell of a row names one field or several, each between backquotes.
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let names = rows.flat_map(|row| row.trim_end_matches('`').split("`, `"));
    let mut documented = BTreeSet::new();
    for name in names {
        assert!(documented.insert(name), "{name} is listed twice");
    }

    let mut sources = texts(&["crates"], "rs");
    // Files that contain only tests are not sources.
    let is_source = |path: &Path| path.iter().nth(2) == Some("src".as_ref());
    sources.retain(|path, _| is_source(path) && !path.ends_with("tests.rs"));
    let mut logged = BTreeSet::from(COMMON);
    for (path, source) in &sources {
        for name in MACROS {
            let is_hidden = source.contains(&format!(" {name}!("));
            let path = path.display();
            assert!(
                !is_hidden,
                "{path}: write tracing::{name}!, which this test finds"
            );
        }
        logged.extend(logged_fields(source));
    }
    assert_eq!(documented, logged);
}
