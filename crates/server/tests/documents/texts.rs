//! The texts of the repository.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Returns the folder of the repository.
pub(crate) fn root() -> PathBuf {
    let server = Path::new(env!("CARGO_MANIFEST_DIR"));
    server.ancestors().nth(2).expect("the workspace").to_owned()
}

/// Returns the texts of the files below these folders with this extension, by their paths from the root.
pub(crate) fn texts(folders: &[&str], extension: &str) -> BTreeMap<PathBuf, String> {
    let root = root();
    let mut pending: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut texts = BTreeMap::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(path).expect("a folder");
            pending.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).expect("a text");
            let name = path.strip_prefix(&root).expect("below the root");
            texts.insert(name.to_owned(), text);
        }
    }
    texts
}

/// Returns the documents of the repository.
pub(crate) fn documents() -> BTreeMap<PathBuf, String> {
    let folders = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs",
        "crates/adapters-postgres/migrations",
    ];
    texts(&folders, "md")
}

/// Returns the anchor of a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let is_part = |character: &char| character.is_alphanumeric() || "-_ ".contains(*character);
    let kept: String = text.chars().filter(is_part).collect();
    kept.replace(' ', "-")
}
