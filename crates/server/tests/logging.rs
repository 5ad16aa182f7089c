//! `docs/logging.md` lists exactly the fields that the code logs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const DOCUMENTATION: &str = include_str!("../../../docs/logging.md");

/// Fields that the JSON format adds to every event.
const COMMON: [&str; 4] = ["timestamp", "level", "message", "target"];

const MACROS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "event"];

/// Returns the sources of all crates, without files that contain only tests.
fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = fs::read_dir(crates)
        .expect("the crates")
        .map(|entry| entry.expect("a crate").path().join("src"));
    let mut pending: Vec<PathBuf> = folders.collect();
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                fs::read_dir(path)
                    .expect("a folder")
                    .map(|entry| entry.expect("a file").path()),
            );
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
    files
}

/// Splits the arguments of a macro, which the text starts with, at commas outside of strings and brackets.
fn arguments(text: &str) -> Vec<&str> {
    let (mut arguments, mut start, mut depth, mut in_string, mut escaped) =
        (Vec::new(), 0, 0, false, false);
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
    let name = argument
        .split('=')
        .next()?
        .trim()
        .trim_start_matches(['%', '?']);
    let word = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    };
    (!name.is_empty() && name.chars().all(word)).then_some(name)
}

fn logged_fields(source: &str) -> BTreeSet<&str> {
    let production = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let macros = MACROS.map(|name| format!("tracing::{name}!("));
    let calls = macros
        .iter()
        .flat_map(|start| production.split(start.as_str()).skip(1));
    calls.flat_map(arguments).filter_map(field).collect()
}

#[test]
fn the_fields_of_a_macro_are_found() {
    let source = r#"
        tracing::info!(target: AUDIT, %address, reason, status = 500, names = list.join(", "), "a, b = ()");
        tracing::event!($level, key = key.map(|key| key.id()), "request")"#;
    let found: Vec<_> = logged_fields(source).into_iter().collect();
    assert_eq!(found, ["address", "key", "names", "reason", "status"]);
}

#[test]
fn the_documentation_lists_exactly_the_fields_that_are_logged() {
    let table = DOCUMENTATION
        .split("## Fields")
        .nth(1)
        .expect("the fields")
        .split("\n## ")
        .next()
        .unwrap_or_default();
    // The first cell of a row names one field or several, each between backquotes.
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let names = rows.flat_map(|row| row.trim_end_matches('`').split("`, `"));
    let documented: Vec<&str> = names.collect();
    let listed = documented.len();
    let documented: BTreeSet<String> = documented.into_iter().map(str::to_owned).collect();
    assert_eq!(documented.len(), listed, "a field is listed twice");

    let mut logged: BTreeSet<String> = COMMON.map(str::to_owned).into();
    for path in sources() {
        let source = fs::read_to_string(&path).expect("a source file");
        for name in MACROS {
            let calls = source.matches(&format!(" {name}!(")).count();
            assert_eq!(
                calls,
                0,
                "{}: write tracing::{name}!, which this test finds",
                path.display()
            );
        }
        logged.extend(logged_fields(&source).into_iter().map(str::to_owned));
    }

    assert_eq!(documented, logged);
}
