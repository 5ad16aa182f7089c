//! Documents name code in two forms: `symbol` in `file.rs`, and a list item that begins with a file and then names its
//! symbols. The file exists, and contains each of them. Paths of crates and scripts exist.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::texts::{documents, root, texts};

/// Signs in the names of files that do not exist: those of a recipe, of an example, or of secrets.
const PLACEHOLDERS: [&str; 7] = ["…", "<", "NNNN", "*", "foo", "mod.rs", "compose/secrets"];

/// Folders whose files a document names by their paths from the root.
const FOLDERS: [&str; 5] = ["crates/", "deploy/", "docs/", "fuzz/", "scripts/"];

/// The parts of a text between backquotes are code: the second one, the fourth one, and so on.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_source(file: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|found| found == "rs")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
}

/// A symbol that a document names in a file.
#[derive(Debug)]
struct Named<'a> {
    symbol: &'a str,
    file: &'a str,
}

impl Named<'_> {
    /// Returns whether a file of this name contains each word of the symbol.
    fn exists(&self, sources: &BTreeMap<PathBuf, String>) -> bool {
        let has_word = |text: &str, word: &str| words(text).any(|found| found == word);
        let has_symbol = |text: &str| words(self.symbol).all(|word| has_word(text, word));
        let mut sources = sources.iter();
        sources.any(|(path, text)| path.ends_with(self.file) && has_symbol(text))
    }
}

/// Finds `symbol` in `file.rs`.
fn named_in_sentences(text: &str) -> Vec<Named<'_>> {
    let parts: Vec<_> = text.split('`').collect();
    let mut named = Vec::new();
    // Code, text, and code.
    for window in parts[1..].windows(3).step_by(2) {
        let [symbol, between, file] = *window else {
            continue;
        };
        if ["in", "in ["].contains(&between.trim()) && is_source(file) {
            named.push(Named { symbol, file });
        }
    }
    named
}

/// Finds the list items that begin with a file: `file.rs`: its `symbol`, and `another`.
fn named_in_lists(text: &str) -> Vec<Named<'_>> {
    let mut named = Vec::new();
    for item in text.split("\n- `").skip(1) {
        let end = ["\n- ", "\n\n"].map(|end| item.find(end).unwrap_or(item.len()));
        let item = &item[..end[0].min(end[1])];
        let Some((file, text)) = item.split_once("`: ") else {
            continue;
        };
        let is_symbol = |code: &&str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_:!".contains(&byte);
            code.bytes().all(is_part)
        };
        if is_source(file) && !file.contains('`') {
            let symbols = code(text).filter(is_symbol);
            named.extend(symbols.map(|symbol| Named { symbol, file }));
        }
    }
    named
}

#[test]
fn each_symbol_that_a_document_names_in_a_file_is_in_it() {
    let sources = texts(&["crates"], "rs");
    let mut count = 0;
    for (document, text) in documents() {
        let mut named = named_in_sentences(&text);
        named.extend(named_in_lists(&text));
        count += named.len();
        for named in named {
            assert!(named.exists(&sources), "{}: {named:?}", document.display());
        }
    }
    assert!(count >= 30, "{count} symbols are found");
}

#[test]
fn each_path_that_a_document_names_exists() {
    let sources = texts(&["crates"], "rs");
    for (document, text) in documents() {
        let paths = code(&text).filter_map(|code| code.split_whitespace().next());
        for path in paths {
            if PLACEHOLDERS.iter().any(|sign| path.contains(sign)) {
                continue;
            }
            let is_path = FOLDERS.iter().any(|folder| path.starts_with(folder));
            let exists = if is_path {
                root().join(path).exists()
            } else {
                !is_source(path) || sources.keys().any(|source| source.ends_with(path))
            };
            assert!(exists, "{}: {path}", document.display());
        }
    }
}
